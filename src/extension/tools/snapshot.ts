/** Reads what a page shows, with all its frames. */
import { ProtocolRefusal } from '../debuggee.js'
import { frameOwners, treeOf, type TreeNode } from './accessibility-tree.js'
import type { Element } from './element-handles.js'
import { framesOf, type Frame } from './frames.js'
import type { Page } from './page.js'
import { renderTree } from './render-tree.js'

export interface SnapshotOptions {
  /** Only this element and what is in it. */
  readonly within?: Element | undefined
  readonly depth?: number | undefined
}

const MAX_BYTES = 128 * 1024
/** The most frames that a snapshot shows. */
const MAX_FRAMES = 50

interface FrameTree {
  readonly frame: Frame
  readonly nodes: readonly TreeNode[]
}

/** A page as text, with a ref for each element. */
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
    ...{ maxBytes: MAX_BYTES, depth },
    refOf: (node) => {
      const frameId = frameIdOf.get(node)
      const { backendNodeId } = node
      return frameId === undefined || backendNodeId === undefined
        ? undefined
        : page.refs.refOf({ frameId, backendNodeId })
    },
    contentOf: (node) => contents.get(node)?.nodes ?? [],
  })
  const rest = `\nThe snapshot is cut: ${left} more lines. Give a target, a ref of this snapshot, or a depth.`
  return `### Snapshot\n\`\`\`yaml\n${text}\n\`\`\`${left > 0 ? rest : ''}`
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

  async function read(frame: Frame): Promise<readonly TreeNode[]> {
    room -= 1
    const options = { sessionId: frame.sessionId, signal }
    const { nodes } = await page.debuggee.send('Accessibility.getFullAXTree', { frameId: frame.id }, options)
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
        // The frame has gone, or shows another page already.
        if (!(error instanceof ProtocolRefusal)) throw error
      }
    }
    return tree
  }

  const main = frames.get(from?.id ?? page.mainFrameId) ?? [...frames.values()][0]
  return main === undefined ? [] : read(main)
}

function* flat(nodes: readonly TreeNode[]): Iterable<TreeNode> {
  for (const node of nodes) {
    yield node
    yield* flat(node.children)
  }
}

function findNode(nodes: readonly TreeNode[], backendNodeId: number): readonly TreeNode[] {
  for (const node of flat(nodes)) if (node.backendNodeId === backendNodeId) return [node]
  return []
}
