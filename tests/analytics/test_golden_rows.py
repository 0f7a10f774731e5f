"""Tables over the journals of a real ActiveMQ, row for row.

What is expected comes from the manifests (what clients did, what ActiveMQ served after a replay)
and from the records as an independent program has decoded them (`*.records.jsonl`).
"""

import json
from collections import Counter

import pytest
from journal_maker import rows_of

DIRECTORIES = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")
ALL, SELECTIVE, GONE = "client-1:sub-all", "client-1:sub-sel", "client-1:sub-gone"
ENDS = {"commit": "committed", "rollback": "rolled_back", "prepare": "prepared"}


class Truth:
    """What a manifest and the decoded records of one directory say."""

    def __init__(self, directory):
        beside = directory.parent
        self.told = json.loads((beside / f"{directory.name}.manifest.json").read_text())
        lines = (beside / f"{directory.name}.records.jsonl").read_text().splitlines()
        self.records = [each for each in map(json.loads, lines) if each["kind"] == "rec"]
        self.served, self.in_doubt = {}, set()
        for place, messages in self.told["recovered_after_index_deletion"].items():
            if place != "xa_recover":
                name = ":".join(place.split(":")[1:3]) if place.startswith("sub:") else place
                self.served[name] = [message["id"] for message in messages]
        for name in ("xa_prepared_add", "xa_prepared_ack"):
            self.in_doubt.add(self.told[name]["message"])

    def of(self, *commands):
        """Yield file, offset, fields and transaction of each record of *commands*."""
        for record in self.records:
            if record["command"] in commands:
                yield record, record["fields"], text_of(record["fields"].get("transaction_info"))

    @property
    def outcomes(self):
        """Return what became of each transaction."""
        found = {}
        for _, _, transaction in self.of("add", "remove"):
            if transaction:
                found[transaction] = "open"
        for record, _, transaction in self.of(*ENDS):
            found[transaction] = ENDS[record["command"]]
        return found


def text_of(transaction):
    if not transaction:
        return None
    if "local" in transaction:
        told = transaction["local"]
        return f"TX:{told['connection_id']}:{told['transaction_id']}"
    told = transaction["xa"]
    places = f"globalId={told['global_transaction_id']},branchId={told['branch_qualifier']}"
    return f"XID:[{told['format_id']},{places}]"


@pytest.fixture(params=DIRECTORIES)
def directory(request, golden):
    return golden / request.param


@pytest.fixture
def truth(directory):
    return Truth(directory)


def test_acknowledgements(directory, truth):
    told = truth.told
    bulk = [
        fields["messageId"]
        for _, fields, _ in truth.of("remove")
        if fields["destination"]["name"] == "GOLD.BULK"
    ]
    assert len(bulk) == told["GOLD.BULK"]["consumed"]
    wanted = [("GOLD.BULK", each, None, "acknowledged") for each in bulk]
    for name, identifiers in (
        ("GOLD.ACKED", told["GOLD.ACKED"]["acked"]),
        ("GOLD.INDIVIDUAL", told["GOLD.INDIVIDUAL"]["acked"]),
        ("GOLD.TX", told["GOLD.TX"]["tx_acked"]),
    ):
        wanted += [(name, each, None, "acknowledged") for each in identifiers]
    for each in told["GOLD.TOPIC"]["subscriptions"]:
        key = f"{each['client_id']}:{each['name']}"
        wanted += [("GOLD.TOPIC", message, key, "acknowledged") for message in each["acked"]]
    wanted += [
        ("GOLD.TOPIC", each["id"], SELECTIVE, "unmatched")
        for each in told["GOLD.TOPIC"]["messages"]
        if each["color"] != "red"
    ]
    names = ("destination", "message_id", "subscription", "outcome")
    rows = rows_of(directory, table="acks")
    assert Counter(tuple(row[name] for name in names) for row in rows) == Counter(wanted)


def test_subscriptions(directory, truth):
    names = ("state", "selector", "no_local", "pending", "acknowledged", "unmatched")
    rows = rows_of(directory, table="subscriptions")
    found = {row["subscription"]: tuple(row[name] for name in names) for row in rows}
    waiting = {key: len(truth.served[key]) for key in (ALL, SELECTIVE)}
    expected = {
        ALL: ("live", None, False, waiting[ALL], 4, 0),
        SELECTIVE: ("live", "color = 'red'", True, waiting[SELECTIVE], 1, 5),
    }
    if any(fields["subscriptionKey"] == GONE for _, fields, _ in truth.of("sub")):
        expected[GONE] = ("deleted", None, False, 0, 0, 0)
    assert found == expected


def expected_messages(truth):
    """Return outcome, place and size of each message."""
    pending = {each for several in truth.served.values() for each in several}
    expected = {}
    for record, fields, transaction in truth.of("add"):
        identifier = fields["messageId"]
        outcome = truth.outcomes.get(transaction, "committed")
        if outcome == "committed":
            outcome = "pending" if identifier in pending else "acknowledged"
        if identifier in truth.in_doubt:
            outcome = "in_doubt"
        expected[identifier] = (
            fields["destination"]["name"],
            outcome,
            int(record["file"][3:-4]),
            record["offset"],
            record["size"],
            fields["message"]["frame_len"] - 4,
        )
    return expected


def test_messages(directory, truth):
    names = ("destination", "outcome", "file_id", "offset", "record_bytes", "message_bytes")
    rows = rows_of(directory, table="messages")
    found = {row["message_id"]: tuple(row[name] for name in names) for row in rows}
    assert found == expected_messages(truth)
    assert len(rows) == len(found)


def test_transactions(directory, truth):
    counts = {transaction: Counter() for transaction in truth.outcomes}
    for record, _, transaction in truth.of("add", "remove"):
        if transaction:
            counts[transaction][record["command"]] += 1
    expected = {
        name: (outcome, counts[name]["add"], counts[name]["remove"])
        for name, outcome in truth.outcomes.items()
        if counts[name]
    }
    rows = rows_of(directory, table="transactions")
    found = {row["transaction"]: (row["outcome"], row["adds"], row["removes"]) for row in rows}
    assert found == expected


def test_destinations(directory, truth):
    expected = {}
    for place, outcome, *_, size in expected_messages(truth).values():
        counts = expected.setdefault(place, Counter())
        counts[outcome] += 1
        counts["pending_bytes"] += size * (outcome == "pending")
    # What a prepared transaction adds is not there yet, what it consumes still is.
    expected["GOLD.XA"]["in_doubt"] -= 1
    names = ("pending", "acknowledged", "in_doubt", "pending_bytes")
    rows = rows_of(directory, table="destinations")
    found = {row["destination"]: tuple(row[name] for name in names) for row in rows}
    assert found == {
        place: tuple(counts[name] for name in names) for place, counts in expected.items()
    }


def test_files(directory, truth):
    expected = {
        int(record["file"][3:-4]): Counter() for record in truth.records if "command" in record
    }
    for record in truth.records:
        counts = expected[int(record["file"][3:-4])]
        counts["records"] += 1
        counts[record["command"]] += 1
    consumed = truth.told["xa_prepared_ack"]["message"]
    for identifier, (_, outcome, file_id, *_) in expected_messages(truth).items():
        expected[file_id]["live"] += outcome == "pending" or identifier == consumed
    rows = rows_of(directory, table="files")
    names = ("records", "adds", "removes", "live_messages")
    found = {row["file_id"]: tuple(row[name] for name in names) for row in rows}
    assert found == {
        number: tuple(counts[name] for name in ("records", "add", "remove", "live"))
        for number, counts in expected.items()
    }


def test_records(directory, truth):
    columns = "file,offset,record_bytes,destination,message_id,subscription,transaction"
    rows = rows_of(directory, columns=columns)
    assert [tuple(row.values()) for row in rows] == [
        (
            record["file"],
            record["offset"],
            record["size"],
            (fields.get("destination") or {}).get("name"),
            fields.get("messageId"),
            fields.get("subscriptionKey"),
            transaction,
        )
        for record, fields, transaction in truth.of(*{each["command"] for each in truth.records})
    ]
