// The npm package `chat`: reads JSON lines, groups by thread, converts with its toAiMessages, writes Parquet.
//
//     npm install --no-package-lock && node --max-semi-space-size=64 chat_package.mjs --input PATH --output FOLDER
//
// The larger young generation leaves less to the garbage collector, which takes two fifths of the time otherwise.
// Links and attachments are converted for real; as in the job's format `messages`, only the text of a message is
// written. Left out: the latest of several versions, rejects (one bad line ends the script), sums.
import { createReadStream, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Field, List, makeData, makeVector, Struct, Table, tableToIPC, Utf8 } from "apache-arrow";
import { toAiMessages } from "chat/ai";
import * as parquet from "parquet-wasm";

const MESSAGES_A_FILE = 1 << 17;
const STRUCT = new Struct([new Field("role", new Utf8(), true), new Field("content", new Utf8(), true)]);

async function* linesOf(path) {
  let rest = "";
  for await (const chunk of createReadStream(path, { encoding: "utf8", highWaterMark: 1 << 20 })) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    yield lines;
  }
  yield [rest];
}

const NONE = [];
const asAttachment = ({ data, ...attachment }) =>
  data === undefined ? attachment : { ...attachment, fetchData: async () => Buffer.from(data, "base64") };

/** A record as the message that it was serialised from: dates are dates, and attachments can be fetched. */
const asMessage = ({ id, text, author, metadata, attachments, links }) => ({
  id,
  text,
  author: { isMe: author.isMe, userName: author.userName },
  metadata: { dateSent: new Date(metadata.dateSent) },
  attachments: attachments?.length ? attachments.map(asAttachment) : NONE,
  links,
});

async function threadsOf(path) {
  const threads = new Map();
  for await (const lines of linesOf(path)) {
    for (const line of lines) {
      if (!line) continue;
      const record = JSON.parse(line);
      const thread = threads.get(record.threadId);
      if (thread) thread.push(asMessage(record));
      else threads.set(record.threadId, [asMessage(record)]);
    }
  }
  return threads;
}

/** What a message says: of one with attachments, its text part. */
const textOf = ({ content }) =>
  typeof content === "string" ? content : content.find((part) => part.type === "text")?.text;

// Arrow columns by their buffers: the builders, value by value, take several times as long.
function strings(values) {
  const offsets = new Int32Array(values.length + 1);
  values.forEach((value, at) => (offsets[at + 1] = offsets[at] + Buffer.byteLength(value)));
  const data = Buffer.from(values.join(""));
  return makeData({ type: new Utf8(), length: values.length, valueOffsets: offsets, data });
}

const lists = (offsets, child) =>
  makeData({
    type: new List(new Field("element", child.type, true)),
    length: offsets.length - 1,
    valueOffsets: Int32Array.from(offsets),
    child,
  });

class Rows {
  threadIds = [];
  offsets = [0];
  ids = [];
  roles = [];
  contents = [];

  add(threadId, messages) {
    for (const message of messages) {
      const text = textOf(message);
      if (text === undefined) continue;
      this.ids.push(message.id);
      this.roles.push(message.role);
      this.contents.push(text);
    }
    if (this.ids.length === this.offsets.at(-1)) return;
    this.threadIds.push(threadId);
    this.offsets.push(this.ids.length);
  }

  parquet() {
    const children = [strings(this.roles), strings(this.contents)];
    const messages = makeData({ type: STRUCT, length: this.ids.length, children });
    const table = new Table({
      thread_id: makeVector(strings(this.threadIds)),
      messages: makeVector(lists(this.offsets, messages)),
      message_ids: makeVector(lists(this.offsets, strings(this.ids))),
    });
    const properties = new parquet.WriterPropertiesBuilder().setCompression(parquet.Compression.ZSTD).build();
    return parquet.writeParquet(parquet.Table.fromIPCStream(tableToIPC(table, "stream")), properties);
  }
}

const { values: options } = parseArgs({ options: { input: { type: "string" }, output: { type: "string" } } });
mkdirSync(options.output, { recursive: true });
let rows = new Rows();
let files = 0;
const write = () => {
  if (rows.ids.length)
    writeFileSync(join(options.output, `part-${String(files++).padStart(5, "0")}.parquet`), rows.parquet());
  rows = new Rows();
};
// What the package gives does not name its message: the hook adds the id.
const transformMessage = (message, { id }) => Object.assign(message, { id });
const threads = await threadsOf(options.input);
for (const [threadId, messages] of threads) {
  threads.delete(threadId);
  rows.add(threadId, await toAiMessages(messages, { transformMessage }));
  if (rows.ids.length >= MESSAGES_A_FILE) write();
}
write();
