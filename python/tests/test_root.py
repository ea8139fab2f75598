"""Where a store is: its URI with the storage options."""

from __future__ import annotations

import copy
import pickle

import pytest
from dsistore import _engine, _root
from dsistore._root import Root

import dsistore

A = "s3://tables/a"


def test_an_option_that_is_none_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"region": None, "anon": True, "credential_provider": None}
    assert dsistore.open(A, options)._root.options == {"anon": "True"}
    assert dsistore.open(A, {"region": None})._root.options == {}
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    request = _engine._text("ingest", {"uri": "/store", "paths": [A], "source_options": {"aws_region": None}})
    assert b'"source_options": {"environment.AWS_REGION": "eu-west-1"}' in request


def test_roots_are_equal_where_their_options_are() -> None:
    staging, production = (Root(A, {"endpoint": of}) for of in ("http://staging", "http://production"))
    assert staging != production and not staging == production
    assert {staging: 1, production: 2} == {Root(A, {"endpoint": "http://staging"}): 1, production: 2}
    assert staging == Root(A, {"endpoint": "http://staging"}) and not staging != Root(A, staging.options)
    assert staging != Root("s3://tables/b", staging.options)
    for same in copy.copy(staging), copy.deepcopy(staging), pickle.loads(pickle.dumps(staging)):
        assert same is staging
    # The plain text is the store that is reached without options.
    assert Root(A) == A and A == Root(A) and hash(Root(A)) == hash(A) and not Root(A) != A
    assert staging != A and A != staging and staging != None and staging != 1  # noqa: E711


def test_options_of_the_stores_opened_last_are_kept() -> None:
    for i in range(_root._MOST + 10):
        dsistore.open(A, {"endpoint": f"http://{i}", "secret_key": "s"})
        dsistore.open(A, {"endpoint": "http://again", "secret_key": "s"})
    assert len(_root._opened) <= _root._MOST
    sent = {of: _root._sent(A, {"endpoint": f"http://{of}"}, "another process's").options
            for of in ("again", f"{_root._MOST + 9}", "0")}
    assert [("secret_key" in options) for options in sent.values()] == [True, True, False]
