"""Fields of XML documents: places are XPaths such as `/order/item/@id`."""

from xml.parsers import expat

from lockkeeper_analytics.shapes.fields import (
    DEPTH_MAX,
    HIDDEN,
    Fields,
    Place,
    shown_name,
    written_type,
)


class NoXmlError(ValueError):
    """A text is no XML document, or one with a document type, which may name other files."""


def add_xml(fields: Fields, text: str) -> None:
    """Note the elements and attributes of *text*; raises NoXmlError."""
    reader = _Reader(fields)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise NoXmlError(str(error)) from error


def _refuse(*_: object) -> None:
    raise NoXmlError("a document type")


class _Reader:
    """Follows the elements of a document; what is hidden or too deep has no fields below."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._open: list[_Element] = []
        self._unseen = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if self._unseen or len(self._open) >= DEPTH_MAX:
            self._unseen += 1
            return
        above = self._open[-1].place if self._open else Place("", "")
        if self._open:
            self._open[-1].has_elements = True
        place = above.below(f"/{shown_name(name)}", f"/{name}")
        if self._fields.is_hidden(place):
            self._fields.add(f"{above.shown}/{HIDDEN}", "hidden")
            self._unseen += 1
            return
        self._open.append(_Element(place))
        for each, value in attributes.items():
            below = place.below(f"/@{shown_name(each)}", f"/@{each}")
            if self._fields.is_hidden(below):
                self._fields.add(f"{place.shown}/@{HIDDEN}", "hidden")
            else:
                self._fields.add(below.shown, written_type(value))

    def text(self, text: str) -> None:
        if not self._unseen and self._open:
            self._open[-1].text += text.strip()

    def end(self, _name: str) -> None:
        if self._unseen:
            self._unseen -= 1
            return
        done = self._open.pop()
        is_value = done.text or not done.has_elements
        self._fields.add(done.place.shown, written_type(done.text) if is_value else "element")


class _Element:
    """An element that has begun and not ended."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.text = ""
        self.has_elements = False
