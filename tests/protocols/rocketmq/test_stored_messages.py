"""Records of a stream as clients are sent them, with texts that are plain and others."""

from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.broker.streams.drafts import (
    RESERVED,
    Draft,
    StreamRecord,
    compose,
    read_plain,
    tag_hash_of,
)
from lockkeeper.message.destination import queue
from lockkeeper.message.segments import lane_of
from lockkeeper.protocols.rocketmq.convert import stored_message
from lockkeeper.protocols.rocketmq.messages import Host, Stored, decode_stored, parse_host

HOST = Host(bytes((10, 0, 0, 9)), 9876)
LANE = lane_of("orders", 2)
AT = 1_700_000_000_000
PLAIN = st.text(st.characters(min_codepoint=3, max_codepoint=126), min_size=1, max_size=200)
ANY = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1,
              max_size=20)  # fmt: skip
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)


def drafts(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Draft]:
    """Return drafts whose properties are of some texts."""
    return st.builds(
        Draft,
        st.binary(max_size=300),
        st.dictionaries(texts.filter(lambda name: name not in RESERVED), texts, max_size=8),
        NUMBERS,
        st.integers(0, 15),
        st.integers(0, 1 << 62),
        st.sampled_from(["", "10.0.0.7:40112", "[2001:db8::1]:9", "nobody"]),
        st.integers(0, 100),
    )


@given(drafts(PLAIN) | drafts(ANY))
def test_a_record_is_sent_as_its_producer_sent_it(draft: Draft) -> None:
    message = compose(draft, queue("Q"), LANE, 7, AT, 999, tag_hash_of(draft.tags))
    record = StreamRecord(7, AT, 4711, len(message.body), message.body)
    sent = decode_stored(stored_message("orders", 2, record, HOST))
    born_host = parse_host(draft.born_host)
    system_flag = draft.system_flag | 16 * born_host.is_ipv6
    assert sent == Stored(
        "orders", 2, 7, 4711, draft.body, draft.properties, draft.flag, system_flag,
        draft.born_at, born_host, AT, HOST, draft.reconsumed,
    )  # fmt: skip


@given(drafts(PLAIN))
def test_plain_texts_are_never_decoded(draft: Draft) -> None:
    plain = read_plain(compose(draft, queue("Q"), LANE, 7, AT, 999, tag_hash_of(draft.tags)).body)
    assert plain is not None
    assert plain.properties == {
        name.encode(): value.encode() for name, value in draft.properties.items()
    }
