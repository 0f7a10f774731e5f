// Command lines that lead on from a row: its messages, the life of one, sending dead letters back.

const MESSAGES_SHOWN = 100;
const IDS_MAX = 20;
const CAUSE = "dlqDeliveryFailureCause";

function sqlText(value) {
  return `'${String(value).replaceAll("'", "''")}'`;
}

function isMoment(name) {
  return name === "time" || name === "period" || name.endsWith("_at");
}

function sqlValue(name, value) {
  if (value === null || value === undefined) return "NULL";
  if (isMoment(name)) return `TIMESTAMPTZ '${new Date(value).toISOString()}'`;
  return typeof value === "string" ? sqlText(value) : String(value);
}

// Returns a pattern of causes that differ in message ids alone, for LIKE … ESCAPE '^'.
function causePattern(cause) {
  return sqlText(String(cause).replace(/[\^%_]/g, "^$&").replaceAll("ID:…", "ID:%"));
}

function shellText(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (text.includes("'") && !/["$`\\!]/.test(text)) return `"${text}"`;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function directoriesOf(row) {
  const own = row("directory");
  const named = own === null || own === undefined ? data.directories : [own];
  return named.map(shellText).join(" ");
}

function messagesCommand(condition, row) {
  const where = condition.replace(/\{(~?)(\w+)\}/g, (_, like, name) => {
    return like ? causePattern(row(name)) : sqlValue(name, row(name));
  });
  const query = "SELECT message_id, outcome, stored_at, ended_latest, correlation_id " +
    `FROM messages WHERE ${where} ORDER BY stored_at LIMIT ${MESSAGES_SHOWN}`;
  return `lockkeeper sql ${shellText(query)} ${directoriesOf(row)}`;
}

function traceCommand(id) {
  return `lockkeeper trace ${shellText(id)} ${data.directories.map(shellText).join(" ")}`;
}

// Returns a command line for each dead letter queue of the rows: by ids where there are few.
function retryCommands(rows) {
  const queues = new Map();
  for (const row of rows) {
    const queue = row("dead_letter_queue");
    queues.set(queue, [...(queues.get(queue) || []), row]);
  }
  return [...queues].map(([queue, chosen]) => {
    const start = `lockkeeper dlq retry --queue ${shellText(queue)}`;
    const ids = chosen.flatMap((row) => row("message_ids") || []);
    const named = chosen.every((row) => row("message_ids"));
    if (named && ids.length <= IDS_MAX) return `${start} ${ids.map(shellText).join(" ")}`;
    const causes = [...new Set(chosen.map((row) => causePattern(row("cause"))))];
    const selector = causes.map((each) => `${CAUSE} LIKE ${each} ESCAPE '^'`).join(" OR ");
    return `${start} --selector ${shellText(selector)}`;
  });
}

// Returns a command line to look at and to copy.
function commandBox(title, command) {
  const box = document.createElement("div");
  box.className = "command";
  const name = document.createElement("p");
  name.textContent = title;
  const code = document.createElement("code");
  code.textContent = command;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => copy(button));
  const line = document.createElement("div");
  line.append(code, button);
  box.append(name, line);
  return box;
}

function copied(button) {
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// Pages of files may not reach the clipboard everywhere: then the text is selected and copied.
async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  copied(button);
}
