/**
 * The words that the documents, comments and texts of this package avoid, because a reader has to read a sentence with such a word twice. Also finds
 * where they occur. CONTRIBUTING.md describes the style.
 */
import ts from 'typescript'
import { readBlocks } from './doc-blocks.js'

/** A refused word or phrase, and what to write instead. */
interface RefusedWord {
  readonly word: string
  readonly write: string
}

export const REFUSED: readonly RefusedWord[] = [
  ...['told', 'tell', 'tells', 'telling'].map((word) => ({
    word,
    write: 'notify, deliver, send, report, receive, show',
  })),
  { word: 'whoever', write: 'the person or thing by its name' },
  { word: 'none of', write: 'no, not any of, or a verb with "not"' },
  { word: 'of which', write: 'a sentence of its own, or "whose"' },
  { word: 'so long', write: 'while' },
  { word: 'nothing else', write: 'only' },
  { word: 'as it is', write: 'unchanged, current, or a sentence of its own' },
]

/** Texts that may contain a refused word, because other programs rely on them. */
export const ALLOWED: readonly string[] = [
  // A field in Redis. Servers of other versions read it as well.
  "agent, 'told'",
]

interface FoundWord {
  readonly file: string
  readonly line: number
  /** The word as it is written in the file. */
  readonly word: string
  readonly write: string
}

/** The refused words in a Markdown document (without fenced code), or in the comments and texts of a source file. */
export function findWords(file: string, text: string, allowed = ALLOWED): FoundWord[] {
  const shown = file.endsWith('.md')
    ? withoutBlocks(file, text)
    : /\.tsx?$/.test(file)
      ? commentsAndTexts(file, text)
      : text
  return find(file, shown, allowed)
}

/** Returns the line that `npm run words` prints for a word. */
export function describeFound({ file, line, word, write }: FoundWord): string {
  return `${file}:${line}: "${word}" (write: ${write})`
}

// A phrase may continue in the next line of a comment, after the `*` or `//`.
const patterns = REFUSED.map(({ word, write }) => ({
  pattern: new RegExp(`(?<![\\w-])${word.replaceAll(' ', '(?:\\s|\\*|//|>)+')}(?![\\w-])`, 'gi'),
  write,
}))

function find(file: string, text: string, allowed: readonly string[]): FoundWord[] {
  const prose = allowed
    .reduce((rest, part) => rest.replaceAll(part, blank), text)
    // Inline code is left out, because it contains names of the code.
    .replaceAll(/`[^`\n]+`/g, blank)
  return patterns
    .flatMap(({ pattern, write }) =>
      [...prose.matchAll(pattern)].map(({ 0: word, index }) => ({
        file,
        line: prose.slice(0, index).split('\n').length,
        word: word.replaceAll(/(?:\s|\*|\/\/|>)+/g, ' '),
        write,
      })),
    )
    .sort((one, other) => one.line - other.line)
}

/** Replaces everything but line ends by spaces, so that line numbers stay the same. */
function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}

function withoutBlocks(file: string, markdown: string): string {
  const lines = markdown.split('\n')
  for (const { line, text } of readBlocks(file, markdown)) {
    const count = text.split('\n').length
    lines.fill('', line - 1, line + count)
  }
  return lines.join('\n')
}

/** Returns a source file in which only the comments, the strings and the text of its JSX are left. The rest is blank. */
function commentsAndTexts(file: string, text: string): string {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  /** The parts to keep, by their position. The position identifies a comment, which is found at several nodes. */
  const kept = new Map<number, string>()
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isJsxText(node) || ts.isTemplateLiteralToken(node)) {
      // Backticks around a template string do not mark inline code.
      kept.set(node.getStart(source), node.getText(source).replaceAll('`', ' '))
    }
    const comments = [
      ...(ts.isJsxText(node) ? [] : (ts.getLeadingCommentRanges(text, node.pos) ?? [])),
      ...(ts.getTrailingCommentRanges(text, node.end) ?? []),
    ]
    for (const { pos, end } of comments) kept.set(pos, text.slice(pos, end))
    node.getChildren(source).forEach(visit)
  }
  visit(source)
  let shown = ''
  for (const [start, part] of [...kept].sort(([one], [other]) => one - other)) {
    shown += blank(text.slice(shown.length, start)) + part
  }
  return shown
}
