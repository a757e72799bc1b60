/** Reads what a page shows, with all its frames. */
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { frameOwners, treeOf, type TreeNode } from './accessibility-tree.js'
import type { Element } from './element-handles.js'
import { framesOf, mainFrameOf, readDocument, type Frame } from './frames.js'
import type { Page } from './page.js'
import { ELEMENTS } from './page-scripts.js'
import { renderTree } from './render-tree.js'

export interface SnapshotOptions {
  /** Limits the snapshot to this element and its content. */
  readonly within?: Element | undefined
  readonly depth?: number | undefined
}

const MAX_BYTES = 128 * 1024
const MAX_FRAMES = 50
/** The maximum number of elements in a snapshot. With more elements, the browser would block the page for seconds. */
const MAX_ELEMENTS = 50_000

interface FrameTree {
  readonly frame: Frame
  readonly nodes: readonly TreeNode[]
}

/** Returns a page as text, with a ref for each element. */
export async function takeSnapshot(
  page: Page,
  { within, depth }: SnapshotOptions,
  signal: AbortSignal,
): Promise<string> {
  const contents = new Map<TreeNode, FrameTree>()
  const frameIdOf = new Map<TreeNode, string>()
  const main = await readFrames(page, within?.frame, contents, frameIdOf, signal)
  const nodes = within === undefined ? main : findNode(main, within.backendNodeId)
  const { text, left } = renderTree(nodes, {
    maxBytes: MAX_BYTES,
    depth,
    refOf: (node) => {
      const frameId = frameIdOf.get(node)
      const { backendNodeId } = node
      return frameId === undefined || backendNodeId === undefined
        ? undefined
        : page.refs.refOf({ frameId, backendNodeId })
    },
    contentOf: (node) => contents.get(node)?.nodes ?? [],
  })
  const refused = page.debuggee.sessions.refused.length
  const without =
    refused === 0 ? '' : `\nLeft out: ${refused} frame(s) that commands may not use, such as the PDF viewer.`
  const rest = `\nThe snapshot is cut: ${left} more lines. Pass a ref of this snapshot as target, or a depth.`
  return `### Snapshot\n\`\`\`yaml\n${text}\n\`\`\`${left > 0 ? rest : ''}${without}`
}

async function readFrames(
  page: Page,
  from: Frame | undefined,
  contents: Map<TreeNode, FrameTree>,
  frameIdOf: Map<TreeNode, string>,
  signal: AbortSignal,
): Promise<readonly TreeNode[]> {
  const frames = await framesOf(page, signal)
  let room = MAX_FRAMES
  let elements = 0

  async function read(frame: Frame): Promise<readonly TreeNode[]> {
    room -= 1
    const options = { sessionId: frame.sessionId, signal }
    const nodes = await readDocument(page, frame, signal, async (world) => {
      elements += await countElements(page, frame, world, signal)
      if (elements > MAX_ELEMENTS) throw tooManyError()
      return (await page.debuggee.send('Accessibility.getFullAXTree', { frameId: frame.id }, options)).nodes
    })
    const tree = treeOf(nodes)
    const owners = new Set(frameOwners(nodes))
    for (const node of flat(tree)) {
      frameIdOf.set(node, frame.id)
      if (node.backendNodeId === undefined || !owners.has(node.backendNodeId) || room <= 0) continue
      try {
        const { node: owner } = await page.debuggee.send(
          'DOM.describeNode',
          { backendNodeId: node.backendNodeId },
          options,
        )
        const inner = frames.get(owner.frameId ?? '')
        if (inner !== undefined) contents.set(node, { frame: inner, nodes: await read(inner) })
      } catch (error) {
        // The frame was removed, or shows another page now. It is left out.
        if (!(error instanceof ProtocolRefusal) && !isNotAllowed(error)) throw error
      }
    }
    return tree
  }

  // `frames` leaves out a main frame that commands may not use. Reading it anyway fails with an error that says why.
  return read(frames.get(from?.id ?? page.mainFrameId) ?? mainFrameOf(page))
}

async function countElements({ debuggee }: Page, { sessionId }: Frame, contextId: number, signal: AbortSignal) {
  const params = { functionDeclaration: ELEMENTS, executionContextId: contextId, returnByValue: true }
  const { result } = await debuggee.send('Runtime.callFunctionOn', params, { sessionId, signal })
  return Number(result.value)
}

const isNotAllowed = (error: unknown): boolean => error instanceof BrowserError && error.code === 'PAGE_NOT_ALLOWED'

const tooManyError = (): BrowserError =>
  new BrowserError(
    'RESULT_TOO_LARGE',
    `The page has more than ${MAX_ELEMENTS} elements. Read what you need with browser_evaluate, and use CSS selectors as targets.`,
  )

/** Yields parents before their children. Without recursion, because a page can be deeper than the call stack. */
function* flat(nodes: readonly TreeNode[]): Iterable<TreeNode> {
  const open = [nodes.values()]
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    const { value: node } = level.next()
    if (node === undefined) open.pop()
    else {
      yield node
      open.push(node.children.values())
    }
  }
}

function findNode(nodes: readonly TreeNode[], backendNodeId: number): readonly TreeNode[] {
  for (const node of flat(nodes)) if (node.backendNodeId === backendNodeId) return [node]
  return []
}
