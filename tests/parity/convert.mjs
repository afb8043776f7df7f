// Reads threads of Chat SDK records, one JSON line each; writes what the npm package `chat` makes of them.
// Runs in the folder that the package is installed in: bare names are looked up from the script's place.
import { createInterface } from "node:readline";
import { toAiMessages } from "chat/ai";
import { toTanStackMessages } from "chat/ai/tanstack";

const asMessage = (record) => ({
  ...record,
  metadata: { ...record.metadata, dateSent: new Date(record.metadata.dateSent) },
  attachments: record.attachments?.map(({ data, ...attachment }) => ({
    ...attachment,
    ...(data === undefined ? {} : { fetchData: async () => Buffer.from(data, "base64") }),
  })),
});

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { records, includeNames } = JSON.parse(line);
  const result = {};
  for (const [name, convert] of [["ai", toAiMessages], ["tanstack", toTanStackMessages]]) {
    const unsupported = [];
    const messages = await convert(records.map(asMessage), {
      includeNames,
      onUnsupportedAttachment: (attachment, message) => unsupported.push([attachment.type, message.id]),
    });
    result[name] = { messages, unsupported };
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
