"""Message brokers: Kafka and Pub/Sub through Beam's own connectors, as `Message`s."""

from __future__ import annotations

import zlib
from typing import Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage, ReadFromPubSub
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.pvalue import PBegin, PCollection

from pipeline.streaming.options import StreamOptions
from pipeline.streaming.reading import Message


class KafkaMessages(beam.PTransform):  # type: ignore[misc]
    """-> Message …, of all partitions of the topics, from the oldest that the broker still has"""

    def __init__(self, options: StreamOptions) -> None:
        super().__init__()
        self._options = options

    def expand(self, begin: PBegin) -> PCollection:
        options = self._options
        consumer = {
            "bootstrap.servers": options.kafka_brokers,
            "auto.offset.reset": "earliest",
            # What was read is in the runner's checkpoints.
            "enable.auto.commit": "false",
        }
        read = ReadFromKafka(
            consumer_config=consumer,
            topics=list(options.kafka_topics),
            # By the messages' own times a partition without any would hold event time back for ever.
            timestamp_policy=ReadFromKafka.processing_time_policy,
            with_metadata=True,
            expansion_service=options.kafka_expansion_service,
        )
        return begin | "Read Kafka" >> read | "Kafka messages" >> beam.Map(_of_kafka)


def _of_kafka(record: Any) -> Message:
    source = f"kafka://{record.topic}/{record.partition:05d}"
    return Message(source, record.offset, record.timestamp, record.value or b"")


class PubsubMessages(beam.PTransform):  # type: ignore[misc]
    """-> Message …, of a subscription"""

    def __init__(self, subscription: str) -> None:
        super().__init__()
        self._subscription = subscription

    def expand(self, begin: PBegin) -> PCollection:
        read = ReadFromPubSub(subscription=self._subscription, with_attributes=True)
        name = f"pubsub://{self._subscription}"
        return begin | "Read Pub/Sub" >> read | "Pub/Sub messages" >> beam.Map(_of_pubsub, name)


def _of_pubsub(message: PubsubMessage, source: str) -> Message:
    """Its place is its id, a number in practice; where it is none, a number that is made of it."""
    identity = message.message_id or ""
    at = int(identity) if identity.isdecimal() and len(identity) < 19 else zlib.crc32(identity.encode())
    arrived = message.publish_time
    return Message(source, at, 0 if arrived is None else int(arrived.timestamp() * 1000), message.data)
