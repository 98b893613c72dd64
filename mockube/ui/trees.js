// JSON patches, and who wrote each part of an object.

const unescape = (part) => part.replaceAll("~1", "/").replaceAll("~0", "~");

/** Return a tree with the operations of a patch; what does not change is shared with the old tree. */
export function patched(tree, operations) {
  for (const { op, path, value } of operations) {
    const parts = path === "" ? [] : path.slice(1).split("/").map(unescape);
    tree = replaced(tree, parts, 0, op, value);
  }
  return tree;
}

function replaced(tree, parts, depth, op, value) {
  if (depth === parts.length) return op === "remove" ? undefined : value;
  const name = parts[depth];
  const isLast = depth === parts.length - 1;
  if (Array.isArray(tree)) {
    const copy = tree.slice();
    const index = name === "-" ? copy.length : Number(name);
    if (isLast && op === "remove") copy.splice(index, 1);
    else if (isLast && op === "add") copy.splice(index, 0, value);
    else copy[index] = replaced(copy[index], parts, depth + 1, op, value);
    return copy;
  }
  if (tree === null || typeof tree !== "object") throw new Error(`nothing is at ${parts.slice(0, depth).join("/")}`);
  const copy = { ...tree };
  if (isLast && op === "remove") delete copy[name];
  else setOwn(copy, name, replaced(Object.hasOwn(copy, name) ? copy[name] : undefined, parts, depth + 1, op, value));
  return copy;
}

/** Set a member, whatever its name is. */
function setOwn(object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function isEqual(a, b) {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}

/** A note of each part of a tree: who wrote it. `own` is that of a leaf, `parts` those of members. */
export class Note {
  constructor(own, parts = null) {
    this.own = own;
    this.parts = parts;
  }
  of(name) {
    return this.parts?.get(String(name)) ?? new Note(this.own);
  }
}

/** Return the notes of a tree, of which one author wrote what differs from the tree before. */
export function noted(before, notes, after, author) {
  if (before !== undefined && isEqual(before, after)) return notes;
  if (after === null || typeof after !== "object") return new Note(author);
  const isSame = before !== null && typeof before === "object" && Array.isArray(before) === Array.isArray(after);
  const parts = new Map();
  for (const name of Object.keys(after)) {
    const old = isSame ? memberBefore(before, after, name) : undefined;
    const note = old === undefined ? new Note(author) : notes.of(old);
    parts.set(name, noted(old === undefined ? undefined : before[old], note, after[name], author));
  }
  return new Note(isSame ? notes.own : author, parts);
}

/** Return the name that a member had before: elements of a list are the same if their name, type or value is. */
function memberBefore(before, after, name) {
  if (!Array.isArray(after)) return Object.hasOwn(before, name) ? name : undefined;
  const element = after[name];
  const key = ["name", "type", "uid", "ip"].find((each) => element !== null && typeof element === "object" && each in element);
  const index = key === undefined
    ? before.findIndex((each) => isEqual(each, element))
    : before.findIndex((each) => each !== null && typeof each === "object" && each[key] === element[key]);
  if (index >= 0) return index;
  return key === undefined && before.length === after.length ? name : undefined;
}

/** Return the notes of a tree by its managed fields: who owns a field is who wrote it last, of those who still do. */
export function notesOfManagers(tree, managedFields, authorOf) {
  let notes = new Note(null);
  for (const entry of managedFields) {
    if (entry.fieldsV1) notes = withFields(tree, notes, entry.fieldsV1, authorOf(entry));
  }
  return notes;
}

function withFields(tree, notes, fields, author) {
  if (tree === null || typeof tree !== "object") return new Note(author);
  const parts = new Map(notes.parts ?? []);
  let isLeaf = true;
  for (const [field, below] of Object.entries(fields)) {
    if (field === ".") continue;
    isLeaf = false;
    const name = memberOf(tree, field);
    if (name !== undefined) parts.set(name, withFields(tree[name], notes.of(name), below, author));
  }
  return isLeaf ? new Note(author) : new Note(null, parts);
}

function memberOf(tree, field) {
  const kind = field.slice(0, 2);
  const rest = field.slice(2);
  if (kind === "f:") return Object.hasOwn(tree, rest) ? rest : undefined;
  if (!Array.isArray(tree)) return undefined;
  const wanted = JSON.parse(rest);
  const index = kind === "k:"
    ? tree.findIndex((each) => Object.entries(wanted).every(([name, value]) => each?.[name] === value))
    : kind === "v:" ? tree.findIndex((each) => isEqual(each, wanted)) : Number(rest);
  return index >= 0 ? String(index) : undefined;
}

const PLAIN = /^[A-Za-z_./-][A-Za-z0-9_./-]*( [A-Za-z0-9_./()-]+)*$/;
const WORDS = new Set(["true", "false", "null", "yes", "no", "on", "off", "~", "y", "n"]);

function scalar(value) {
  if (typeof value !== "string") return String(value);
  if (PLAIN.test(value) && !WORDS.has(value.toLowerCase()) && value !== "-" && !/^[-.]/.test(value)) return value;
  return JSON.stringify(value);
}

/** Return the lines of a tree as YAML: each with its text, the note of what it shows, and the path. */
export function yamlLines(tree, notes = new Note(null)) {
  const lines = [];
  write(tree, notes, 0, "", [], lines);
  return lines;
}

function write(tree, notes, indent, head, path, lines) {
  const isBranch = tree !== null && typeof tree === "object" && Object.keys(tree).length > 0;
  if (!isBranch) {
    const text = tree !== null && typeof tree === "object" ? (Array.isArray(tree) ? "[]" : "{}") : scalar(tree);
    if (typeof tree === "string" && tree.includes("\n")) {
      lines.push({ indent, text: `${head}|`, path, author: notes.own });
      for (const line of tree.replace(/\n$/, "").split("\n")) lines.push({ indent: indent + 1, text: line, path, author: notes.own, isValue: true });
      return;
    }
    lines.push({ indent, text: head + text, path, author: notes.own });
    return;
  }
  if (head) {
    if (head.endsWith("- ")) {
      const from = lines.length;
      writeMembers(tree, notes, indent + 1, path, lines);
      lines[from].indent = indent;
      lines[from].text = head + lines[from].text;
      return;
    }
    lines.push({ indent, text: head.trimEnd(), path, author: commonAuthor(notes) });
  }
  writeMembers(tree, notes, head && !Array.isArray(tree) ? indent + 1 : indent, path, lines);
}

function writeMembers(tree, notes, indent, path, lines) {
  for (const name of Object.keys(tree)) {
    const head = Array.isArray(tree) ? "- " : `${scalar(name)}: `;
    write(tree[name], notes.of(name), indent, head, [...path, name], lines);
  }
}

/** Return the one author of all parts; null if there are several. */
function commonAuthor(notes) {
  if (!notes.parts) return notes.own;
  const authors = new Set([...notes.parts.values()].map(commonAuthor));
  return authors.size === 1 ? [...authors][0] : null;
}

const namesOf = (path) => path.slice(1).split("/").map(unescape);

/** Return the path of an operation as a field, such as spec.containers[0].image. */
export const fieldText = (path) => namesOf(path).map((part) => (/^[0-9]+$/.test(part) ? `[${part}]` : `.${part}`)).join("").replace(/^\./, "");

/** Return what each of the Changes of an object changed, `{ field, before, after, isKnown }`; what was before is known from the creation on. */
export function valuesOf(changes) {
  let tree = null;
  return changes.map(({ type, patch }) => {
    if (type !== "MODIFIED" || !patch) {
      tree = type === "ADDED" ? patch?.[0].value ?? null : null;
      return [];
    }
    return patch.map((operation) => {
      const isKnown = tree !== null;
      const before = isKnown ? valueBefore(tree, operation) : undefined;
      tree = isKnown ? patchedOrNull(tree, [operation]) : null;
      return { field: fieldText(operation.path), before, after: operation.op === "remove" ? undefined : operation.value, isKnown };
    });
  });
}

/** Return what an operation replaces or removes; undefined if it adds. */
function valueBefore(tree, { op, path }) {
  const names = namesOf(path);
  const parent = names.slice(0, -1).reduce((value, name) => value?.[name], tree);
  return op === "add" && Array.isArray(parent) ? undefined : parent?.[names.at(-1)];
}

/** Return a tree after a patch; null if the patch is of another tree. */
export function patchedOrNull(tree, patch) {
  try {
    return patched(tree, patch);
  } catch {
    return null;
  }
}
