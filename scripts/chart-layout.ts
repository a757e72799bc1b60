/** Lays a machine out with ELK: where its states, its lines and their labels are. */
import elk, { type ElkEdgeSection, type ElkExtendedEdge, type ElkNode } from 'elkjs/lib/elk.bundled.js'
import type { AnyStateMachine, AnyStateNode } from 'xstate'
import type { Box, ChartEdge, ChartLabel, ChartNode, MachineChart } from '../src/page/app/chart.js'
import { pathOf, transitionsOf, type ChartTransition } from './charts.js'

/** A monospaced character at 11 px, and at 13 px for names. */
const LABEL_CHARACTER = 6.7
const LABEL_LINE = 16
const NAME_CHARACTER = 8
const STATE_HEIGHT = 48
/** The name of a compound state is above its children. */
const HEADING = 40
const MARK = 14

const layered = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.json.edgeCoords': 'ROOT',
  'elk.json.shapeCoords': 'ROOT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.padding': '[top=12,left=4,bottom=12,right=4]',
  // Close together: the chart of a task is readable in the width of a phone.
  'elk.spacing.nodeNode': '10',
  'elk.spacing.edgeNode': '8',
  'elk.spacing.edgeEdge': '6',
  'elk.spacing.edgeLabel': '2',
  'elk.layered.spacing.nodeNodeBetweenLayers': '28',
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '10',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.thoroughness': '30',
  'elk.spacing.nodeSelfLoop': '20',
}

/** The transitions between two states share a line. */
interface Line {
  readonly from: AnyStateNode
  readonly to: AnyStateNode
  readonly transitions: ChartTransition[]
}

/** @throws Error when ELK leaves a line without a route */
export async function layOut(machine: AnyStateMachine): Promise<MachineChart> {
  const { root } = machine
  const lines = linesOf(machine)
  const starts = compounds(root).map((node) => ({ node, initial: node.initial.target[0] }))
  const hasAny = lines.some(({ from }) => from === root)
  const graph: ElkNode = {
    id: root.id,
    layoutOptions: layered,
    children: [...childrenOf(root), ...(hasAny ? [{ id: anyOf(root), ...anyBox }] : [])],
    edges: [
      ...starts.flatMap(({ node, initial }): ElkExtendedEdge[] =>
        initial === undefined ? [] : [{ id: `${startOf(node)} >`, sources: [startOf(node)], targets: [initial.id] }],
      ),
      ...lines.map((line, index) => elkEdgeOf(line, `line ${index}`, root)),
    ],
  }
  const placed = await new elk.default().layout(graph)
  const edges = new Map((placed.edges ?? []).map((edge) => [edge.id, edge]))
  return {
    id: machine.id,
    description: root.description ?? '',
    width: Math.ceil(placed.width ?? 0),
    height: Math.ceil(placed.height ?? 0),
    states: nodesOf(placed, machine),
    edges: [
      ...starts.flatMap(({ node, initial }): ChartEdge[] => {
        if (initial === undefined) return []
        return [{ to: pathOf(initial), points: pointsOf(edges.get(`${startOf(node)} >`)), labels: [] }]
      }),
      ...lines.map(({ from, to, transitions }, index): ChartEdge => {
        const edge = edges.get(`line ${index}`)
        return {
          ...(from !== root && { from: pathOf(from) }),
          to: pathOf(to),
          points: pointsOf(edge),
          labels: transitions.flatMap(rowsOf).map(({ text, description }, row) => ({
            text,
            description,
            ...boxOf(edge?.labels?.[row]),
          })),
        }
      }),
    ],
  }
}

function linesOf(machine: AnyStateMachine): Line[] {
  const lines = new Map<string, Line>()
  for (const transition of transitionsOf(machine)) {
    const { from, target: to } = transition
    if (to === undefined) continue
    const key = `${from.id} ${to.id}`
    const line = lines.get(key) ?? { from, to, transitions: [] }
    lines.set(key, line)
    const isNew = ({ event, guard }: ChartTransition): boolean =>
      event !== transition.event || guard !== transition.guard
    if (line.transitions.every(isNew)) line.transitions.push(transition)
  }
  return [...lines.values()]
}

/** The guard is below its event: that is narrower. */
function rowsOf({ event, guard, description = '' }: ChartTransition): Pick<ChartLabel, 'text' | 'description'>[] {
  const texts = event === 'always' ? [`[${guard ?? 'else'}]`] : guard === undefined ? [event] : [event, `[${guard}]`]
  return texts.map((text) => ({ text, description }))
}

function elkEdgeOf({ from, to, transitions }: Line, id: string, root: AnyStateNode): ElkExtendedEdge {
  return {
    id,
    sources: [from === root ? anyOf(root) : from.id],
    targets: [to.id],
    // As the file of a machine has them: states that come later are further down.
    layoutOptions: { 'elk.layered.priority.direction': from.order < to.order ? '10' : '0' },
    labels: transitions.flatMap(rowsOf).map(({ text }) => ({
      text,
      width: Math.ceil(text.length * LABEL_CHARACTER) + 4,
      height: LABEL_LINE,
      layoutOptions: { 'elk.edgeLabels.inline': 'true', 'elk.edgeLabels.placement': 'CENTER' },
    })),
  }
}

function childrenOf(parent: AnyStateNode): ElkNode[] {
  const children = Object.values(parent.states).map((node): ElkNode => {
    const width = Math.max(84, Math.ceil(node.key.length * NAME_CHARACTER) + 24)
    if (Object.keys(node.states).length === 0) {
      const last = { layoutOptions: { 'elk.layered.layering.layerConstraint': 'LAST' } }
      return { id: node.id, width, height: STATE_HEIGHT, ...(node.type === 'final' && last) }
    }
    return {
      id: node.id,
      layoutOptions: { ...layered, 'elk.padding': `[top=${HEADING},left=8,bottom=16,right=8]` },
      children: childrenOf(node),
    }
  })
  return parent.type === 'compound' ? [{ id: startOf(parent), width: MARK, height: MARK }, ...children] : children
}

function compounds(node: AnyStateNode): AnyStateNode[] {
  return [...(node.type === 'compound' ? [node] : []), ...Object.values(node.states).flatMap(compounds)]
}

function nodesOf(placed: ElkNode, machine: AnyStateMachine): ChartNode[] {
  return (placed.children ?? []).flatMap((child): ChartNode[] => [
    chartNodeOf(child, machine),
    ...nodesOf(child, machine),
  ])
}

function chartNodeOf(placed: ElkNode, machine: AnyStateMachine): ChartNode {
  const [id = '', mark] = placed.id.split(' ')
  const node = machine.getStateNodeById(id)
  const common = { path: pathOf(node), ...boxOf(placed) }
  if (mark === 'start') return { ...common, name: '', kind: 'start', description: '' }
  if (mark === 'any') return { ...common, name: 'any state', kind: 'any', description: '' }
  const kind = node.type === 'final' ? 'final' : node.type === 'compound' ? 'compound' : 'atomic'
  return { ...common, name: node.key, kind, description: node.description ?? '' }
}

const anyBox = { width: 96, height: 32 }

function startOf({ id }: AnyStateNode): string {
  return `${id} start`
}

function anyOf({ id }: AnyStateNode): string {
  return `${id} any`
}

function pointsOf(edge: ElkExtendedEdge | undefined): ChartEdge['points'] {
  const [section] = edge?.sections ?? []
  if (section === undefined) throw new Error(`ELK has not routed ${edge?.id ?? 'a line'}`)
  return [section.startPoint, ...bendsOf(section), section.endPoint].map(({ x, y }) => ({ x: round(x), y: round(y) }))
}

function bendsOf({ bendPoints = [] }: ElkEdgeSection): NonNullable<ElkEdgeSection['bendPoints']> {
  return bendPoints
}

function boxOf({ x = 0, y = 0, width = 0, height = 0 }: Partial<Box> = {}): Box {
  return { x: round(x), y: round(y), width: round(width), height: round(height) }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
