/**
 * The words that the documents, comments and texts of this package do without, because a sentence with one of them has to be read twice,
 * and where they occur. CONTRIBUTING.md says which style is meant.
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

/** Texts that may contain a refused word, exactly as written, because others rely on them. */
export const ALLOWED: readonly string[] = [
  // A field in Redis, which servers of other versions read as well.
  "agent, 'told'",
]

interface FoundWord {
  readonly file: string
  readonly line: number
  /** As it stands in the file. */
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

/** How `npm run words` prints one. */
export function describeFound({ file, line, word, write }: FoundWord): string {
  return `${file}:${line}: "${word}" (write: ${write})`
}

// A phrase may go on in the next line, after the decoration of a comment.
const patterns = REFUSED.map(({ word, write }) => ({
  pattern: new RegExp(`(?<![\\w-])${word.replaceAll(' ', '(?:\\s|\\*|//|>)+')}(?![\\w-])`, 'gi'),
  write,
}))

function find(file: string, text: string, allowed: readonly string[]): FoundWord[] {
  const prose = allowed
    .reduce((rest, part) => rest.replaceAll(part, blank), text)
    // Inline code names things of the code.
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

/** As many spaces and line ends, so that the rest keeps its lines. */
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

/** A source file in which everything but its comments, its strings and the text of its JSX is blank. */
function commentsAndTexts(file: string, text: string): string {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  /** What is shown, by where it begins: a comment belongs to several nodes. */
  const kept = new Map<number, string>()
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isJsxText(node) || ts.isTemplateLiteralToken(node)) {
      // Backticks around a template do not make it inline code.
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
