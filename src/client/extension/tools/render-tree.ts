/** Writes a tree for a model: a line for each node, indented below its parent. Has no side effects. */
import type { TreeNode } from './accessibility-tree.js'

export interface RenderOptions {
  /** The maximum size of the text, in bytes of UTF-8. */
  readonly maxBytes: number
  /** The maximum number of levels; children of deeper nodes are left out. */
  readonly depth?: number | undefined
  /** Returns the ref of an element. Called only for nodes that get a line. */
  readonly refOf: (node: TreeNode) => string | undefined
  /** Returns the nodes that a frame shows, for the node of its element. */
  readonly contentOf: (node: TreeNode) => readonly TreeNode[]
}

export interface RenderedTree {
  readonly text: string
  /** The number of lines that did not fit. */
  readonly left: number
}

export function renderTree(
  nodes: readonly TreeNode[],
  { maxBytes, depth = Infinity, ...of }: RenderOptions,
): RenderedTree {
  const lines: string[] = []
  const encoder = new TextEncoder()
  let bytes = 0
  let left = 0

  function add(line: () => string): void {
    if (left === 0) {
      const text = line()
      bytes += encoder.encode(text).length + 1
      if (bytes <= maxBytes) {
        lines.push(text)
        return
      }
    }
    left += 1
  }

  /** Adds the lines of a node. Returns its children. */
  function visit(node: TreeNode, level: number): readonly TreeNode[] {
    const indent = '  '.repeat(level)
    if (node.role === 'text') {
      add(() => `${indent}- text: ${quoted(node.name)}`)
      return []
    }
    const all = node.role === 'iframe' ? [...node.children, ...of.contentOf(node)] : node.children
    const [only] = all
    const text = node.value ?? (all.length === 1 && only?.role === 'text' ? only.name : undefined)
    const children = text !== undefined && node.value === undefined ? [] : level + 1 < depth ? all : []
    const url = node.url
    add(() => {
      const ref = of.refOf(node)
      const name = node.name === '' ? '' : ` ${JSON.stringify(node.name)}`
      const states = [...node.states, ...(ref === undefined ? [] : [`ref=${ref}`])].map((one) => ` [${one}]`).join('')
      const colon = children.length > 0 || text !== undefined || url !== undefined ? ':' : ''
      return `${indent}- ${node.role}${name}${states}${colon}${text === undefined ? '' : ` ${quoted(text)}`}`
    })
    if (url !== undefined) add(() => `${indent}  - /url: ${url}`)
    return children
  }

  // Without recursion, because a page can be deeper than the call stack.
  const open = [nodes.values()]
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    const { value: node } = level.next()
    if (node === undefined) open.pop()
    else open.push(visit(node, open.length - 1).values())
  }
  return { text: lines.join('\n'), left }
}

/** Quotes a text that YAML or a model could misread. */
const quoted = (text: string): string =>
  /^[\s"'[\]{}&*#?|>!%@`-]|: |:$| #|\[ref=|^$/.test(text) ? JSON.stringify(text) : text
