"use strict";

// Figures as people read them: short ones for axes and hints, and those of cells as text.py has
// them.

function shortened(text, characters) {
  return text.length <= characters ? text : `${text.slice(0, Math.max(1, characters - 1))}…`;
}

function countText(value) {
  if (value >= 1e9) return `${+(value / 1e9).toFixed(2)} G`;
  if (value >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toFixed(2));
}

function sizeText(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${+(value / 1024 ** power).toPrecision(3)} ${units[power]}`;
}

function durationText(value) {
  if (value < 1000) return `${+value.toFixed(value < 10 ? 1 : 0)} ms`;
  if (value < 60000) return `${+(value / 1000).toFixed(2)} s`;
  const minutes = value / 60000;
  if (minutes < 60) return `${+minutes.toFixed(1)} min`;
  return minutes < 2880 ? `${+(minutes / 60).toFixed(1)} h` : `${+(minutes / 1440).toFixed(1)} d`;
}

const FORMATS = {
  ms: durationText,
  bytes: sizeText,
  share: (value) => `${+(value * 100).toFixed(1)} %`,
};

const UNKNOWN = "–";
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const LONG_MONTHS = "January February March April May June July August September October November"
  .split(" ").concat("December");

// Python rounds a half to the even neighbour, and so does this.
function whole(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 0, roundingMode: "halfEven" });
}

// As Python has a number with so many digits behind its point: a half goes to the even neighbour.
function fixed(value, digits) {
  const scaled = value * 10 ** digits;
  const isHalf = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs(scaled % 1) === 0.5;
  if (!isHalf) return value.toFixed(digits);
  const below = Math.floor(scaled);
  return ((below % 2 ? below + 1 : below) / 10 ** digits).toFixed(digits);
}

// Three digits that count, without zeros at the end; Python writes exponents with two digits.
function threeDigits(value) {
  if (value === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3)))));
  if (power >= -4 && power < 3) return String(Number(fixed(value, 2 - power)));
  const [digits, exponent] = value.toExponential(2).split("e");
  const size = String(Math.abs(Number(exponent))).padStart(2, "0");
  return `${Number(digits)}e${exponent.startsWith("-") ? "-" : "+"}${size}`;
}

const CELL_TEXTS = {
  count: whole,
  decimal: (value) => {
    const isWhole = Math.abs(value) >= 100 || Number.isInteger(value);
    return isWhole ? whole(value) : threeDigits(value);
  },
  share: (value) => {
    const percent = 100 * value;
    if (percent && percent < 0.1) return "< 0.1 %";
    return `${fixed(percent, percent >= 99.95 || percent < 0.05 ? 0 : 1)} %`;
  },
  bytes: (value) => {
    const sizes = ["B", "KiB", "MiB", "GiB", "TiB"];
    let [amount, unit] = [value, 0];
    for (; amount >= 1000 && unit < sizes.length - 1; unit += 1) amount /= 1024;
    return unit ? `${threeDigits(amount)} ${sizes[unit]}` : `${fixed(value, 0)} B`;
  },
  ms: (value) => {
    if (value < 9.95) return `${fixed(value, 1)} ms`.replace(".0 ", " ");
    if (value < 999.5) return `${fixed(value, 0)} ms`;
    if (value < 59950) return `${threeDigits(value / 1000)} s`;
    const seconds = Number(fixed(value / 1000, 0));
    const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3600)];
    if (hours < 1) return `${minutes} min ${seconds % 60} s`;
    if (hours < 24) return `${hours} h ${minutes % 60} min`;
    return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  },
};

function shortMoment(at) {
  const date = new Date(at);
  const clock = date.toISOString().slice(-13, -5);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${clock}`;
}

function longMoment(at) {
  const date = new Date(at);
  const clock = date.toISOString().slice(-13, -5);
  const year = String(date.getUTCFullYear());
  return `${date.getUTCDate()} ${LONG_MONTHS[date.getUTCMonth()]} ${year}, ${clock}`;
}
