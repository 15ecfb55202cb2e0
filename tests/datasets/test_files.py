"""Where files are looked for, what is said when there is none, and which are refused."""

import hashlib
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from groupwise.datasets import _files, adult, medical
from groupwise.datasets._files import DataFile, locate
from groupwise.errors import DatasetError

CONTENT = b"a,b\n1,2\n"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Folders for each place that is searched; the cache is one of them, not the user's."""
    folders = {name: tmp_path / name for name in ("argument", "environment", "cache")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setattr(_files, "cache", lambda: folders["cache"])
    monkeypatch.setenv("GROUPWISE_DATA", str(folders["environment"]))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return folders


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """A web server on this machine: its folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


@pytest.fixture
def file(server):
    """A file that is published on that server."""
    folder, address = server
    (folder / "small.csv").write_bytes(CONTENT)
    return DataFile("small.csv", f"{address}/small.csv", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def nowhere():
    """A file whose address refuses the connection."""
    return DataFile("small.csv", "http://127.0.0.1:9/small.csv", "0" * 64)


def test_places_are_searched_in_order(places, file, tmp_path):
    given = tmp_path / "given.csv"
    for path in (given, *(folder / "small.csv" for folder in places.values())):
        path.write_text("put here")
    argument = places["argument"]

    assert locate(file, given, argument) == given
    assert locate(file, None, argument) == argument / "small.csv"
    (argument / "small.csv").unlink()
    assert locate(file, None, argument) == places["environment"] / "small.csv"
    (places["environment"] / "small.csv").unlink()
    assert locate(file, None, argument) == places["cache"] / "small.csv"
    assert (places["cache"] / "small.csv").read_text() == "put here"
    (places["cache"] / "small.csv").unlink()
    assert locate(file, None, argument) == places["cache"] / "small.csv"
    assert (places["cache"] / "small.csv").read_bytes() == CONTENT


def test_without_the_environment_variable(places, file, monkeypatch):
    (places["environment"] / "small.csv").write_text("put here")
    monkeypatch.delenv("GROUPWISE_DATA")
    assert locate(file).parent == places["cache"]
    monkeypatch.setenv("GROUPWISE_DATA", "")
    assert locate(file).parent == places["cache"]


def test_a_download_is_kept(file, server):
    first = locate(file)
    (server[0] / "small.csv").unlink()
    assert locate(file) == first


def test_a_download_with_another_checksum_is_refused(places, file, server):
    (server[0] / "small.csv").write_bytes(CONTENT + b"3,4\n")
    with pytest.raises(DatasetError, match=r"(?s)small\.csv.*hash") as error:
        locate(file)
    assert file.sha256 in str(error.value)
    assert not list(places["cache"].iterdir())


def test_without_a_network_the_error_says_what_to_do(places, nowhere):
    with pytest.raises(DatasetError) as error:
        locate(nowhere, data_dir=places["argument"])
    message = str(error.value)
    assert message.startswith("small.csv is not in ")
    assert nowhere.address in message
    assert "GROUPWISE_DATA" in message
    for folder in places.values():
        assert str(folder) in message


@pytest.mark.parametrize("load", [medical, adult])
def test_a_data_set_that_cannot_be_had(load, places, monkeypatch):
    def unreachable(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr("pooch.retrieve", unreachable)
    with pytest.raises(DatasetError) as error:
        load()
    message = str(error.value)
    assert "https://raw.githubusercontent.com/" in message
    assert str(places["cache"]) in message
    assert "no route" in message


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(DatasetError, match=r"no file .*here\.csv\. insurance\.csv is at https"):
        medical(tmp_path / "here.csv")


def test_folders_that_are_not_there(tmp_path, file, monkeypatch):
    with pytest.raises(DatasetError, match=r"data folder .*slip is not a folder"):
        locate(file, data_dir=tmp_path / "slip")
    monkeypatch.setenv("GROUPWISE_DATA", str(tmp_path / "slip"))
    with pytest.raises(DatasetError, match=r"GROUPWISE_DATA, .*slip is not a folder"):
        locate(file)


def test_the_cache_is_the_users(monkeypatch):
    monkeypatch.undo()
    assert "groupwise" in str(_files.cache())


def lines_of(path: Path, header: str, rows: int) -> Path:
    cells = ",".join("1" for _ in header.split(","))
    path.write_text("\n".join([header, *[cells] * rows]) + "\n")
    return path


def test_other_columns_are_refused_by_name(tmp_path):
    path = lines_of(tmp_path / "f.csv", "age,sex,bmi,children,smoker,charges,zip", 1338)
    with pytest.raises(DatasetError) as error:
        medical(path)
    assert "missing region; unexpected zip" in str(error.value)
    assert str(path) in str(error.value)


def test_the_uci_edition_is_refused(tmp_path):
    header = (
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,"
        "race,sex,capital-gain,capital-loss,hours-per-week,native-country,income"
    )
    with pytest.raises(DatasetError, match="unexpected fnlwgt"):
        adult(lines_of(tmp_path / "f.csv", header, 3))


@pytest.mark.parametrize("rows", [0, 1337, 1339])
def test_another_number_of_rows_is_refused(tmp_path, rows):
    path = lines_of(tmp_path / "f.csv", "age,sex,bmi,children,smoker,region,charges", rows)
    with pytest.raises(DatasetError, match=f"has {rows:,} rows, expected 1,338"):
        medical(path)


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "f.csv"
    path.touch()
    with pytest.raises(DatasetError, match="missing age"):
        medical(path)


def test_a_ragged_row_is_named(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("age,sex\n1,male\n2\n")
    with pytest.raises(DatasetError, match="row 2 has 1 fields, the header 2"):
        medical(path)


def test_a_folder_of_files_is_enough(insurance, places):
    shutil.copy(insurance, places["argument"])
    assert medical(data_dir=places["argument"]).rows == 1_338


def test_the_checksum_of_medical_costs(insurance):
    from groupwise.datasets.medical import FILE

    assert hashlib.sha256(insurance.read_bytes()).hexdigest() == FILE.sha256
