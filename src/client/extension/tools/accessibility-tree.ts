/** Reduces the accessibility tree of a page to what a model needs. Has no side effects. */
import type { Protocol } from 'devtools-protocol'
import { cutText } from '../../../data/cut-text.js'

export interface TreeNode {
  /** The role of an element, such as `button`; `text` for a text. */
  readonly role: string
  readonly name: string
  /** For example `checked` or `level=2`. */
  readonly states: readonly string[]
  readonly value?: string | undefined
  readonly url?: string | undefined
  /** The browser's id of the element; undefined for a text. */
  readonly backendNodeId?: number | undefined
  readonly children: readonly TreeNode[]
}

type AXNode = Protocol.Accessibility.AXNode

const TEXT_CHARS = 1000
const URL_CHARS = 300

const ROLES: Readonly<Record<string, string>> = {
  image: 'img',
  LabelText: 'generic',
  StaticText: 'text',
  Iframe: 'iframe',
}
/** Roles without a meaning for a model. A node with such a role is replaced by its children. */
const TRANSPARENT = ['none', 'presentation', 'MenuListPopup', 'RootWebArea', 'InlineTextBox']
const DROPPED = ['ListMarker', 'LineBreak', 'InlineTextBox']

/**
 * Returns the nodes below the root of a frame's tree. Builds children before their parents, without recursion, because the tree of a page can be deeper
 * than the call stack.
 */
export function treeOf(nodes: readonly AXNode[]): readonly TreeNode[] {
  const byId = new Map(nodes.map((node) => [node.nodeId, node]))
  const [root] = nodes
  if (root === undefined) return []
  const order = [root]
  for (const node of order) {
    for (const id of childIds(node)) {
      const child = byId.get(id)
      if (child !== undefined) order.push(child)
    }
  }
  const made = new Map<string, readonly TreeNode[]>()
  for (const node of order.reverse()) {
    made.set(
      node.nodeId,
      nodesOf(node, (id) => made.get(id) ?? []),
    )
  }
  return made.get(root.nodeId) ?? []
}

/** The parts inside a text field are left out, because its value describes it. */
const childIds = ({ childIds: ids = [], properties }: AXNode): readonly string[] =>
  properties?.some(({ name, value }) => name === 'editable' && value.value === 'plaintext') === true ? [] : ids

export const frameOwners = (nodes: readonly AXNode[]): readonly number[] =>
  nodes.flatMap(({ role, ignored, backendDOMNodeId }) =>
    role?.value === 'Iframe' && !ignored && backendDOMNodeId !== undefined ? [backendDOMNodeId] : [],
  )

/** @param madeOf returns the nodes that were built for a child */
function nodesOf(node: AXNode, madeOf: (id: string) => readonly TreeNode[]): readonly TreeNode[] {
  const axRole = textOf(node.role)
  if (DROPPED.includes(axRole)) return []
  const properties = new Map(node.properties?.map(({ name, value }) => [name, value.value as unknown]))
  const children = joinTexts(childIds(node).flatMap(madeOf))
  if (node.ignored || TRANSPARENT.includes(axRole)) return children
  const role = ROLES[axRole] ?? axRole.toLowerCase()
  const name = cutText(plain(textOf(node.name)), TEXT_CHARS)
  if (role === 'text') return name === '' ? [] : [{ role, name, states: [], children: [] }]
  const isEditable = properties.has('editable')
  if (role === 'generic' && name === '' && properties.get('focusable') !== true && !isEditable && !isTexts(children)) {
    return children
  }
  const value = cutText(plain(textOf(node.value)), TEXT_CHARS)
  const states = statesOf(role, properties)
  const url = role === 'link' ? properties.get('url') : undefined
  return [
    {
      role,
      name,
      states,
      // With children the value is left out, because their texts show it.
      ...(value !== '' && children.length === 0 && { value }),
      ...(typeof url === 'string' && { url: cutText(url, url.startsWith('data:') ? 60 : URL_CHARS) }),
      backendNodeId: node.backendDOMNodeId,
      // Leaves out a text that repeats the name of its element.
      children: isTexts(children) && children[0]?.name === name ? [] : children,
    },
  ]
}

const isTexts = (children: readonly TreeNode[]): boolean => children.length === 1 && children[0]?.role === 'text'

function joinTexts(nodes: readonly TreeNode[]): readonly TreeNode[] {
  const joined: TreeNode[] = []
  for (const node of nodes) {
    const last = joined.at(-1)
    if (node.role !== 'text' || last?.role !== 'text') joined.push(node)
    else joined[joined.length - 1] = { ...last, name: cutText(`${last.name} ${node.name}`, TEXT_CHARS) }
  }
  return joined
}

function statesOf(role: string, properties: ReadonlyMap<string, unknown>): readonly string[] {
  const states: string[] = []
  for (const name of ['checked', 'pressed']) {
    const value = properties.get(name)
    if (value === 'true' || value === true) states.push(name)
    if (value === 'mixed') states.push(`${name}=mixed`)
  }
  for (const name of ['disabled', 'readonly', 'selected']) if (properties.get(name) === true) states.push(name)
  const expanded = properties.get('expanded')
  if (typeof expanded === 'boolean') states.push(expanded ? 'expanded' : 'collapsed')
  if (properties.get('focused') === true) states.push('active')
  const invalid = properties.get('invalid')
  if (typeof invalid === 'string' && invalid !== 'false') states.push('invalid')
  if (role === 'heading') states.push(`level=${String(properties.get('level'))}`)
  return states
}

const textOf = (value: Protocol.Accessibility.AXValue | undefined): string =>
  value?.value === undefined ? '' : String(value.value)

const plain = (text: string): string => text.replace(/\s+/g, ' ').trim()
