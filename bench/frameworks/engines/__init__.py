"""The engines: a file format and the framework that reads it. One module each framework, imported only by the engine's
process."""

from __future__ import annotations

from typing import NamedTuple

_GRAIN = {
    "grain-dsistore": ("DsistoreBatches", "`table.grain(...)`, a batch at once"),
    "grain-dsistore-rows": ("DsistoreRows", "`table.grain(...)`, row by row"),
    "grain-example": ("ArrayRecordExamples", "ArrayRecord of tf.train.Example, all features"),
    "grain-example-10": ("ArrayRecordExamples", "ArrayRecord of tf.train.Example, only these features"),
    "grain-pickle-10": ("ArrayRecordPickles", "ArrayRecord of pickled arrays, only these features"),
    "grain-pickle-10-batches": ("ArrayRecordPickleBatches", "the same, a batch at once"),
}
SHUFFLED = "-shuffled"  # the end of the names of engines that Grain shuffles by row

# name -> (module, class, what it is called in tables, and what the class is given besides threads)
ENGINES = {
    "tensorflow-dsistore": ("tensorflow_engines", "DsistoreDataset", "`table.tensorflow(...).dataset()`"),
    "tensorflow-tfrecord": ("tensorflow_engines", "TFRecord", "tf.data over TFRecord, all features"),
    "tensorflow-tfrecord-10": ("tensorflow_engines", "TFRecord", "tf.data over TFRecord, only these features"),
    "tensorflow-parquet": ("tensorflow_engines", "Parquet", "tf.data over Parquet zstd-3, pyarrow"),
    "numpy-dsistore": ("arrays", "Numpy", "`table.numpy(...)`"),
    "jax-dsistore": ("arrays", "Jax", "`table.jax(...)`"),
    **{name: ("grain_engines", cls, what) for name, (cls, what) in _GRAIN.items()},
    **{name + SHUFFLED: ("grain_engines", cls, what, True) for name, (cls, what) in _GRAIN.items()},
}


class Stored(NamedTuple):
    """What an engine reads. Engines that read the same share a file."""

    name: str  # of the file or directory
    projected: bool = False  # whether it holds only the features that are read, where others cannot be left unread


_FILES = {
    "tensorflow-tfrecord-10": Stored("tfrecord-10", True), "tensorflow-tfrecord": Stored("tfrecord"),
    "tensorflow-parquet": Stored("parquet-pyarrow"), "grain-example-10": Stored("arrayrecord-example-10", True),
    "grain-example": Stored("arrayrecord-example"), "grain-pickle-10": Stored("arrayrecord-pickle-10", True),
    "grain-pickle-10-batches": Stored("arrayrecord-pickle-10", True),
}


def stored(name: str) -> Stored:
    """What an engine reads: the store of a table, where nothing else is said."""
    return _FILES.get(name.removesuffix(SHUFFLED), Stored("dsistore"))
