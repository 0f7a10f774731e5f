"""A run of removals writes the same bytes as its removals one by one, and books the same."""

from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import ProducerId
from lockkeeper.store.kahadb import KahaDBStore

A = queue("A")
OTHER = ProducerId("ID:a-producer-with-a-longer-name-1:1", 1, 1)


def written(directory: Path) -> list[bytes]:
    return [file.path.read_bytes() for file in list_data_files(directory)]


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_a_run_is_written_as_its_removals_are(tmp_path: Path, kit: Kit, is_paged_out: bool) -> None:
    found = []
    for name in ("one by one", "run"):
        store = KahaDBStore(tmp_path / name, file_bytes_max=1 << 14)
        store.open()
        references = [
            kit.reference(number, size=700, producer=OTHER if number % 3 else kit.PRODUCER)
            for number in range(60)
        ]
        for reference in references:
            store.add(A, reference, None)
            kit.until_durable(store)
        ended = references[5:40]
        if is_paged_out:
            for reference in ended[::2]:
                reference.message = None
        if name == "run":
            store.remove_run(A, ended)
        else:
            for reference in ended:
                store.remove(A, reference)
        kit.until_durable(store)
        states = [(each.state, each.holders, each.location, each.size) for each in references]
        files = store._file_references.files.values()
        booked = [(each.live, each.size, each.refers) for each in files]
        store.close()
        found.append((written(tmp_path / name), states, booked))
    assert len(found[0][0]) > 3
    assert found[0] == found[1]
