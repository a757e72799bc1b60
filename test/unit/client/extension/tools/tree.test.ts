/** The text of an accessibility tree. */
import { describe, expect, it } from 'vitest'
import { frameOwners, treeOf } from '../../../../../src/client/extension/tools/accessibility-tree.js'
import { renderTree, type RenderOptions } from '../../../../../src/client/extension/tools/render-tree.js'

type Nodes = Parameters<typeof treeOf>[0]
interface Given {
  readonly role: string
  readonly name?: string
  readonly value?: string
  readonly ignored?: boolean
  readonly is?: Readonly<Record<string, unknown>>
  readonly in?: readonly Given[]
}

/** The nodes as the browser sends them. */
function nodesOf(root: Given): Nodes {
  const nodes: Nodes[number][] = []
  const add = (given: Given): string => {
    const nodeId = String(nodes.length + 1)
    const node = {
      nodeId,
      ignored: given.ignored ?? false,
      backendDOMNodeId: nodes.length + 1,
      role: { type: 'role', value: given.role },
      name: { type: 'computedString', value: given.name ?? '' },
      ...(given.value !== undefined && { value: { type: 'string', value: given.value } }),
      properties: Object.entries(given.is ?? {}).map(([name, value]) => ({ name, value: { type: 'string', value } })),
      childIds: [] as string[],
    } as unknown as Nodes[number] & { childIds: string[] }
    nodes.push(node)
    node.childIds.push(...(given.in ?? []).map(add))
    return nodeId
  }
  add(root)
  return nodes
}

const text = (name: string): Given => ({ role: 'StaticText', name, in: [{ role: 'InlineTextBox', name }] })
const page = (...children: Given[]): Given => ({ role: 'RootWebArea', name: 'Title', in: children })

function textOf(root: Given, options: Partial<RenderOptions> = {}): string {
  const of = { maxBytes: 10_000, refOf: () => undefined, contentOf: () => [] }
  return renderTree(treeOf(nodesOf(root)), { ...of, ...options }).text
}

describe('the text of a tree', () => {
  it('leaves out what has no meaning of its own, and keeps what is in it', () => {
    const root = page({ role: 'none', ignored: true, in: [{ role: 'generic', in: [{ role: 'generic', in: [text('a')] }, { role: 'button', name: 'b', in: [text('b')] }] }] }) // prettier-ignore
    expect(textOf(root)).toBe('- generic: a\n- button "b"')
  })

  it('joins texts, and drops the marks of lists', () => {
    const root = page({
      role: 'list',
      in: [{ role: 'listitem', in: [{ role: 'ListMarker', name: '•' }, text('one '), text(' two')] }],
    })
    expect(textOf(root)).toBe('- list:\n  - listitem: one two')
  })

  it('keeps a node that takes the focus or text, though it has no name', () => {
    const inside = [
      { role: 'link', name: 'x' },
      { role: 'link', name: 'y' },
    ]
    const root = page(
      { role: 'generic', is: { focusable: true }, in: inside },
      { role: 'generic', is: { editable: 'richtext' }, in: inside },
    )
    expect(textOf(root)).toBe('- generic:\n  - link "x"\n  - link "y"\n- generic:\n  - link "x"\n  - link "y"')
  })

  it('has states, values and addresses', () => {
    const root = page(
      { role: 'checkbox', name: 'c', is: { checked: 'mixed', disabled: true, focused: true } },
      { role: 'button', name: 'p', is: { pressed: 'true', expanded: true } },
      { role: 'heading', name: 'h', is: { level: 2 } },
      {
        role: 'textbox',
        name: 't',
        value: 'v',
        is: { editable: 'plaintext', invalid: 'true', readonly: true },
        in: [text('v')],
      },
      { role: 'link', name: 'l', is: { url: 'http://x/' } },
      { role: 'link', name: 'd', is: { url: `data:${'x'.repeat(100)}` } },
    )
    expect(textOf(root)).toBe(
      [
        '- checkbox "c" [checked=mixed] [disabled] [active]',
        '- button "p" [pressed] [expanded]',
        '- heading "h" [level=2]',
        '- textbox "t" [readonly] [invalid]: v',
        '- link "l":\n  - /url: http://x/',
        `- link "d":\n  - /url: data:${'x'.repeat(55)}`,
      ].join('\n'),
    )
  })

  it('quotes a text that looks like something else', () => {
    expect(textOf(page({ role: 'paragraph', in: [text('- a: b')] }, text('[x]')))).toBe(
      '- paragraph: "- a: b"\n- text: "[x]"',
    )
  })

  it('names elements, and asks for no name of a line without room', () => {
    const root = page(...Array.from({ length: 100 }, () => ({ role: 'button', name: 'b' })))
    let refs = 0
    const refOf = () => `e${(refs += 1)}`
    const { text: some, left } = renderTree(treeOf(nodesOf(root)), { maxBytes: 200, refOf, contentOf: () => [] })
    expect(some.split('\n')[1]).toBe('- button "b" [ref=e2]')
    expect(some.length).toBeLessThanOrEqual(200)
    expect(some.split('\n').length + left).toBe(100)
    expect(refs).toBe(some.split('\n').length + 1)
  })

  it('counts bytes, not characters', () => {
    const root = page(...Array.from({ length: 10 }, () => ({ role: 'button', name: 'ü'.repeat(20) })))
    expect(new TextEncoder().encode(textOf(root, { maxBytes: 200 })).length).toBeLessThanOrEqual(200)
  })

  it('stops at a depth, and puts what a frame shows below it', () => {
    const nodes = nodesOf(page({ role: 'Iframe' }, { role: 'Iframe', ignored: true }))
    expect(frameOwners(nodes)).toEqual([2])
    const inner = treeOf(nodesOf(page({ role: 'list', in: [{ role: 'listitem', in: [text('deep')] }] })))
    const render = (depth?: number) =>
      renderTree(treeOf(nodes), { maxBytes: 1000, depth, refOf: () => undefined, contentOf: () => inner }).text
    expect(render()).toBe('- iframe:\n  - list:\n    - listitem: deep')
    expect(render(2)).toBe('- iframe:\n  - list')
  })

  it('is empty for a page without nodes', () => {
    expect(treeOf([])).toEqual([])
  })
})
