/** Finds the fenced code blocks of a Markdown document, so that their programs and data can be checked. */

/** One fenced block. */
export interface DocBlock {
  /** The document's path, from the root of the repository. */
  readonly file: string
  /** The line of its opening fence, counted from 1. */
  readonly line: number
  /** The first word after the fence, such as `ts`, `sh` or `json`. */
  readonly language: string
  /** The words after the language. */
  readonly flags: readonly string[]
  readonly text: string
}

/** Every fenced block of a document, in order. */
export function readBlocks(file: string, markdown: string): DocBlock[] {
  const blocks: DocBlock[] = []
  const lines = markdown.split('\n')
  for (let index = 0; index < lines.length; index += 1) {
    const fence = /^ *(`{3,})(.*)$/.exec(lines[index]!)
    if (fence === null) continue
    const end = lines.findIndex((line, at) => at > index && line.trim() === fence[1])
    if (end === -1) throw new Error(`${file}:${index + 1}: this block has no end`)
    const [language = '', ...flags] = fence[2]!.trim().split(/\s+/)
    blocks.push({ file, line: index + 1, language, flags, text: lines.slice(index + 1, end).join('\n') })
    index = end
  }
  return blocks
}

/** A TypeScript program of a document: one block, or a block with those that continue it. */
export interface DocProgram {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Returns the programs of a document's `ts` blocks. A block marked `continue` belongs to the program of the block before it. */
export function readPrograms(blocks: readonly DocBlock[]): DocProgram[] {
  const programs: DocProgram[] = []
  for (const { file, line, language, flags, text } of blocks) {
    if (language !== 'ts') continue
    const before = programs.at(-1)
    if (!flags.includes('continue')) programs.push({ file, line, text })
    else if (before === undefined) {
      throw new Error(`${file}:${line}: there is no block before it that this block could continue`)
    } else programs[programs.length - 1] = { ...before, text: joinModules(before.text, text) }
  }
  return programs
}

/** Joins two blocks. Moves the imports of the second one to the top, where a module may have them. */
function joinModules(before: string, after: string): string {
  const isImport = (line: string): boolean => /^import /.test(line)
  const lines = after.split('\n')
  return [...lines.filter(isImport), before, ...lines.filter((line) => !isImport(line))].join('\n')
}
