"""Messages of Kafka in columns, by the compiled package: no object of any message.

It calls the librdkafka that confluent-kafka has loaded, through its own C interface.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partialmethod
from typing import Any
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, TopicPartition, cimpl

from ingest.kafka.message_consumer import MessageConsumer, Taken
from ingest.tradelog.contract import Chunk
from ingest.tradelog.speedups import find_speedups

_Reporter = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
)
_KINDS = {
    **{"-": None, "f": _Reporter, "p": ctypes.c_void_p, "s": ctypes.c_char_p},
    **{"i": ctypes.c_int, "l": ctypes.c_int64, "z": ctypes.c_size_t},
}
_FUNCTIONS = {
    **{"conf_new": "p", "conf_set": "ipsssz", "conf_destroy": "-p", "new": "pipsz"},
    **{"poll_set_consumer": "ip", "destroy_flags": "-pi", "assign": "ipp"},
    **{"queue_get_consumer": "pp", "queue_destroy": "-p", "conf_set_error_cb": "-pf"},
    **{"incremental_assign": "ppp", "incremental_unassign": "ppp"},
    **{"error_code": "ip", "error_destroy": "-p"},
    **{"topic_partition_list_new": "pi", "topic_partition_list_destroy": "-p"},
    "topic_partition_list_add": "ppsi",
    "topic_partition_list_set_offset": "ipsil",
}
"""Those of librdkafka that are called: what each returns, then what it takes."""

_CONSUMER, _NO_CLOSE = 1, 8


@cache
def columns_fault() -> str:
    """Return why messages do not come by the compiled package; empty: they do."""
    if find_speedups() is None:
        return "it is not installed"
    try:
        find_speedups().library(cimpl.__file__)
        return "" if all(map(_function, _FUNCTIONS)) else "a function is missing"
    except (OSError, AttributeError) as error:
        return str(error)


def consumer_kind(
    speedups: bool,
) -> Callable[[dict[str, Any]], "ColumnConsumer | MessageConsumer"]:
    """Return the kind of consumer that a reader takes."""
    return ColumnConsumer if speedups and not columns_fault() else MessageConsumer


class ColumnConsumer:
    """Does what ``MessageConsumer`` does; for one thread at a time.

    ``options`` are as confluent-kafka's, ``error_cb`` among them, no other function.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        texts, why = dict(options), ctypes.create_string_buffer(512)
        report = texts.pop("error_cb")
        heard = _Reporter(lambda _, code, why, __: report(_error(code, why)))
        conf, kafka = _call("conf_new"), None
        _call("conf_set_error_cb", conf, heard)
        for name, value in texts.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if _call("conf_set", conf, name.encode(), text.encode(), why, len(why)):
                break
        else:
            kafka = _call("new", _CONSUMER, conf, why, len(why))
        if kafka is None:
            _call("conf_destroy", conf)
            raise KafkaException(_error(KafkaError._INVALID_ARG, why.value))
        _call("poll_set_consumer", kafka)
        self._kafka, self._queue = kafka, _call("queue_get_consumer", kafka)
        # What is called back stays for as long as it may be.
        finalize(self, _close, kafka, self._queue, heard).atexit = False

    def take(self, most: int, wait_s: float) -> Taken:
        """Return up to so many messages, and what happened; wait so long for all."""
        speedups, wait_ms = find_speedups(), int(wait_s * 1000)
        count, block, told = speedups.take(self._queue, most, wait_ms)
        events = [(p, _error(code, why), offset) for p, code, offset, why in told]
        if not count:
            return [], events
        stamps = pa.py_buffer(block)
        offsets = stamps.slice(8 * count)
        partitions = offsets.slice(8 * count)
        ends = partitions.slice(4 * count)
        columns = (
            _array(pa.int64(), count, offsets),
            _array(pa.int64(), count, stamps),
            _array(pa.binary(), count, ends, ends.slice(4 * (count + 1))),
        )
        found = pc.run_end_encode(_array(pa.int32(), count, partitions))
        runs, at = [], 0
        for partition, end in zip(found.values, found.run_ends, strict=True):
            size = end.as_py() - at
            offsets, stamps, payloads = (column.slice(at, size) for column in columns)
            run = Chunk(offsets, stamps, payloads, offsets[-1].as_py())
            runs.append((partition.as_py(), run))
            at += size
        return runs, events

    def _place(self, way: str, places: Sequence[TopicPartition] = ()) -> None:
        listed = _call("topic_partition_list_new", len(places))
        for place in places:
            where = listed, place.topic.encode(), place.partition
            _call("topic_partition_list_add", *where)
            _call("topic_partition_list_set_offset", *where, place.offset)
        told = _call(way, self._kafka, listed if places else None)
        _call("topic_partition_list_destroy", listed)
        if told and way != "assign":
            error, told = told, _call("error_code", told)
            _call("error_destroy", error)
        if told:
            raise KafkaException(KafkaError(told))

    assign = partialmethod(_place, "assign")
    unassign = partialmethod(_place, "assign")
    incremental_assign = partialmethod(_place, "incremental_assign")
    incremental_unassign = partialmethod(_place, "incremental_unassign")


@cache
def _function(name: str) -> Any:
    function = getattr(ctypes.CDLL(cimpl.__file__), f"rd_kafka_{name}")
    function.restype, *function.argtypes = (_KINDS[kind] for kind in _FUNCTIONS[name])
    return function


def _call(name: str, *arguments: Any) -> Any:
    return _function(name)(*arguments)


def _close(kafka: int, queue: int, _: Any) -> None:
    _call("queue_destroy", queue)
    _call("destroy_flags", kafka, _NO_CLOSE)


def _array(kind: pa.DataType, count: int, *buffers: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, *buffers])


def _error(code: int, why: bytes | None) -> KafkaError:
    return KafkaError(code, (why or b"").decode(errors="replace"))
