"""Shapes of bodies: formats, fields and types; no value, no name that may be one, no masked one."""

import io
import json

import pytest

from lockkeeper_analytics.shapes.fields import FIELDS_MAX
from lockkeeper_analytics.shapes.shape import shape_of


def fields_of(body, *masks, kind="text"):
    text, octets = (None, body) if isinstance(body, bytes) else (body, None)
    shape = shape_of(kind, text, octets, masks)
    assert shape is not None
    return shape.format, {place: sorted(types) for place, types in shape.fields.items()}


def test_json_has_places_and_types():
    order = {
        "id": "4711",
        "at": "2026-11-20T12:00:00Z",
        "customer": {"name": "Ann", "vip": True, "since": "2020-01-31"},
        "items": [{"price": 9.5, "n": 1}, {"price": 3, "note": None}],
        "trace": "6f1c0a52-6f0e-4a53-9d5c-0c9f4a1f3f10",
    }
    assert fields_of(json.dumps(order)) == (
        "json",
        {
            "$": ["object"],
            "$.id": ["string"],
            "$.at": ["string (date-time)"],
            "$.customer": ["object"],
            "$.customer.name": ["string"],
            "$.customer.vip": ["boolean"],
            "$.customer.since": ["string (date)"],
            "$.items": ["array"],
            "$.items[*]": ["object"],
            "$.items[*].price": ["integer", "number"],
            "$.items[*].n": ["integer"],
            "$.items[*].note": ["null"],
            "$.trace": ["string (uuid)"],
        },
    )
    assert fields_of(json.dumps(order).encode())[0] == "json"
    assert fields_of('{"a": 1}', kind="map") == ("map", {"$": ["object"], "$.a": ["integer"]})


def test_xml_has_elements_attributes_and_what_they_mean():
    text = (
        '<?xml version="1.0"?>\n<order id="7"><item n="x"><price>9.5</price></item><item/></order>'
    )
    assert fields_of(text) == (
        "xml",
        {
            "/order/@id": ["integer"],
            "/order/item/@n": ["string"],
            "/order/item/price": ["number"],
            "/order/item": ["element", "string"],
            "/order": ["element"],
        },
    )


def test_names_that_may_be_values_are_not_shown():
    balances = {"balances": {"ann@example.com": 1, "4711": 2, "Åsa": 3, "x" * 41: 4}}
    assert fields_of(json.dumps(balances))[1].keys() == {"$", "$.balances", "$.balances.*"}
    table = {f"name{number}": number for number in range(65)}
    assert fields_of(json.dumps(table))[1].keys() == {"$", "$.*"}


def test_no_value_is_in_a_shape():
    secret = "S3cret-0815"
    bodies = [
        json.dumps({"a": secret, secret + "!": 1, "b": [secret, {"c": secret}]}),
        f"<a b='{secret}'>{secret}</a>",
        secret,
        secret.encode(),
        b"\xff" + secret.encode(),
    ]
    for body in bodies:
        assert secret not in json.dumps(fields_of(body))


def test_a_mask_hides_a_field_and_all_below_it():
    body = json.dumps({"user": {"Password": "x", "card": {"no": 1}}, "n": 1})
    assert fields_of(body, "*password", "$.user.card")[1] == {
        "$": ["object"],
        "$.user": ["object"],
        "$.user.***": ["hidden"],
        "$.n": ["integer"],
    }
    found = fields_of("<a pin='1'><b><c>1</c></b><d>2</d></a>", "/a/b", "*@PIN")[1]
    assert found == {
        "/a/@***": ["hidden"],
        "/a/***": ["hidden"],
        "/a/d": ["integer"],
        "/a": ["element"],
    }


def hidden_from(body, mask):
    """Return the places that *mask* leaves of a body of JSON, but for the body itself."""
    return fields_of(json.dumps(body), mask)[1].keys() - {"$"}


@pytest.mark.parametrize("mask", ["$.cards[*].iban", "$.cards[*].i?an", "$.CARDS[*].*", "*].iban"])
def test_a_mask_may_be_a_place_in_an_array_as_it_is_shown(mask):
    body = {"cards": [{"iban": "DE02"}]}
    assert hidden_from(body, mask) == {"$.cards", "$.cards[*]", "$.cards[*].***"}


def test_a_mask_hides_the_items_of_an_array_with_all_below_them():
    assert hidden_from([{"pin": 1}], "$[*].pin") == {"$[*]", "$[*].***"}
    assert hidden_from([{"pin": 1}], "$[*]") == {"$.***"}
    assert hidden_from({"pins": [1, [2]], "n": 1}, "$.pins[*]") == {"$.pins", "$.pins.***", "$.n"}
    assert hidden_from({"pins": [[2]]}, "$.pins[*][*]") == {"$.pins", "$.pins[*]", "$.pins[*].***"}


def test_brackets_in_a_mask_are_those_of_a_place():
    assert hidden_from({"a": 1, "b": 2}, "$.[ab]") == {"$.a", "$.b"}
    assert hidden_from({"[ab]": 1, "!": {"]": 2}}, "$.[ab]") == {"$.***", "$.*", "$.*.*"}


@pytest.mark.parametrize("name", ["größe", "x" * 41, "a b", "4711"])
def test_a_mask_is_about_names_that_are_not_shown_and_all_below_them(name):
    body = {name: {"pin": 1, "deep": {"pin": 2}}}
    assert hidden_from(body, f"$.{name}.*") == {"$.*", "$.*.***"}
    assert hidden_from(body, f"$.{name.title()}.deep.pin") == {
        "$.*", "$.*.pin", "$.*.deep", "$.*.deep.***",
    }  # fmt: skip


def test_a_mask_is_about_the_names_in_a_table():
    table = {f"name{number}": {"pin": 1} for number in range(65)}
    assert hidden_from(table, "$.name7.pin") == {"$.*", "$.*.pin", "$.*.***"}


def test_a_mask_is_about_elements_that_are_not_shown():
    text = "<a><größe pin='1'><pin>2</pin></größe></a>"
    assert fields_of(text, "/a/größe/pin")[1].keys() == {"/a", "/a/*", "/a/*/@pin", "/a/*/***"}
    assert fields_of(text, "/a/größe/@pin")[1].keys() == {"/a", "/a/*", "/a/*/@***", "/a/*/pin"}


def test_names_as_long_as_a_body_take_no_longer():
    body = {"x" * 400_000: {f"n{number}": 1 for number in range(60)}}
    assert hidden_from(body, "*.n7") == {
        "$.*", "$.*.***", *(f"$.*.n{number}" for number in range(60) if number != 7),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("hello {", "text"),
        ("", "text"),
        ("{", "text"),
        ("[" * 100_000, "text"),
        ('{"a": ' + "9" * 5000 + "}", "text"),
        ("<a>", "text"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "text"),
        (b"\xac\xed\x00\x05sr", "java"),
        (b"\x00\xff", "binary"),
        (b"Obj\x01 and no more", "avro"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_format_alone(body, expected):
    assert fields_of(body) == (expected, {"$": [expected]})


def test_without_a_body_there_is_no_shape():
    assert shape_of("message", None, None) is None


def test_a_body_tells_no_more_than_so_many_fields():
    body = json.dumps([{f"a{number}": {f"b{n}": 0 for n in range(50)}} for number in range(50)])
    assert len(fields_of(body)[1]) == FIELDS_MAX
    deep = json.dumps([[]])
    for _ in range(200):
        deep = f'{{"a": {deep}}}'
    assert len(fields_of(deep)[1]) == 33


def test_avro_containers_tell_the_schema_in_their_head():
    fastavro = pytest.importorskip("fastavro")
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "note", "type": ["null", "string"]},
            {"name": "tags", "type": {"type": "map", "values": "int"}},
            {
                "name": "items",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Item",
                        "fields": [{"name": "pin", "type": "string"}],
                    },
                },
            },
        ],
    }
    file = io.BytesIO()
    order = {"id": 1, "at": 2, "note": None, "tags": {"a": 1}, "items": [{"pin": "x"}]}
    fastavro.writer(file, schema, [order])
    assert fields_of(file.getvalue(), "*.pin") == (
        "avro",
        {
            "$": ["record"],
            "$.id": ["long"],
            "$.at": ["long (timestamp-millis)"],
            "$.note": ["null", "string"],
            "$.tags": ["map"],
            "$.tags.*": ["int"],
            "$.items": ["array"],
            "$.items[*]": ["record"],
            "$.items[*].***": ["hidden"],
        },
    )


def test_of_an_avro_single_object_the_fingerprint_is_known():
    single = b"\xc3\x01" + bytes.fromhex("0123456789abcdef") + b"\x02"
    assert fields_of(single) == ("avro single object", {"$": ["schema efcdab8967452301"]})
