/** Computes the layout of a machine's chart with ELK: the positions of its states, lines and labels. */
import elk, { type ElkEdgeSection, type ElkExtendedEdge, type ElkNode } from 'elkjs/lib/elk.bundled.js'
import type { AnyStateMachine, AnyStateNode } from 'xstate'
import type { Box, ChartEdge, ChartLabel, ChartNode, MachineChart } from '../src/page/app/chart.js'
import { pathOf, transitionsOf, type ChartTransition } from './charts.js'
import { findCommonExits, isWithin, type CommonExits, type ExitGroup, type LineSource } from './common-exits.js'

/** The width of a monospaced character, in px: at font size 11 for labels, and at 13 for names. */
const LABEL_CHARACTER = 6.7
const LABEL_LINE = 16
const NAME_CHARACTER = 8
const STATE_HEIGHT = 48
/** The height above the children of a compound state, where its name is, in px. */
const HEADING = 40
const MARK = 14
const GROUP = '[top=14,left=8,bottom=14,right=8]'

const layered = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.json.edgeCoords': 'ROOT',
  'elk.json.shapeCoords': 'ROOT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.padding': '[top=12,left=4,bottom=12,right=4]',
  // The distances are small, so that the chart of a task is readable on a phone.
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

/** A line of the chart. It stands for all transitions between two states, or from all states of a group to one state. */
interface Line {
  readonly source: LineSource
  readonly to: AnyStateNode
  readonly labels: Pick<ChartLabel, 'text' | 'description'>[]
}

/** @throws Error when ELK leaves a line without a route */
export async function layOut(machine: AnyStateMachine): Promise<MachineChart> {
  const { root } = machine
  const transitions = transitionsOf(machine)
  const exits = findCommonExits(transitions)
  const lines = linesOf(transitions, exits)
  const starts = compounds(root).map((node) => ({ node, initial: node.initial.target[0] }))
  const hasAny = lines.some(({ source }) => source === root)
  const graph: ElkNode = {
    id: root.id,
    layoutOptions: layered,
    children: [...childrenOf(root, exits), ...(hasAny ? [{ id: anyOf(root), ...anyBox }] : [])],
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
        return [{ from: [], to: pathOf(initial), points: pointsOf(edges.get(`${startOf(node)} >`)), labels: [] }]
      }),
      ...lines.map(({ source, to, labels }, index): ChartEdge => {
        const edge = edges.get(`line ${index}`)
        return {
          from: source === root ? [] : statesOf(source).map(pathOf),
          to: pathOf(to),
          points: pointsOf(edge),
          labels: labels.map((label, row) => ({ ...label, ...boxOf(edge?.labels?.[row]) })),
        }
      }),
    ],
  }
}

function statesOf(source: LineSource): ExitGroup {
  return 'id' in source ? [source] : source
}

function linesOf(transitions: readonly ChartTransition[], exits: CommonExits): Line[] {
  const lines = new Map<string, Line>()
  for (const transition of transitions) {
    const { target: to } = transition
    if (to === undefined) continue
    const source = exits.sourceOf(transition)
    const key = `${idOf(source)} ${to.id}`
    const line = lines.get(key) ?? { source, to, labels: [] }
    lines.set(key, line)
    const same = transitions.filter(
      (other) =>
        exits.sourceOf(other) === source &&
        other.target === to &&
        other.event === transition.event &&
        other.guard === transition.guard,
    )
    if (same[0] === transition) line.labels.push(...rowsOf(transition, descriptionOf(same)))
  }
  return [...lines.values()]
}

/** Describes what a transition means. If that differs between the states of a group, describes it for each state. */
function descriptionOf(same: readonly ChartTransition[]): string {
  const texts = new Set(same.map(({ description = '' }) => description))
  if (texts.size === 1) return same[0]?.description ?? ''
  return same.map(({ from, description = '' }) => `${from.key}: ${description}`).join('\n')
}

/** Puts the guard below its event, which makes the label narrower. */
function rowsOf({ event, guard }: ChartTransition, description: string): Line['labels'] {
  const texts = event === 'always' ? [`[${guard ?? 'else'}]`] : guard === undefined ? [event] : [event, `[${guard}]`]
  return texts.map((text) => ({ text, description }))
}

function elkEdgeOf({ source, to, labels }: Line, id: string, root: AnyStateNode): ElkExtendedEdge {
  const [first] = statesOf(source)
  return {
    id,
    sources: [source === root ? anyOf(root) : idOf(source)],
    targets: [to.id],
    // States that come later in the machine are further down.
    layoutOptions: { 'elk.layered.priority.direction': (first?.order ?? 0) < to.order ? '10' : '0' },
    labels: labels.map(({ text }) => ({
      text,
      width: Math.ceil(text.length * LABEL_CHARACTER) + 4,
      height: LABEL_LINE,
      layoutOptions: { 'elk.edgeLabels.inline': 'true', 'elk.edgeLabels.placement': 'CENTER' },
    })),
  }
}

function childrenOf(parent: AnyStateNode, exits: CommonExits): ElkNode[] {
  const children = grouped(Object.values(parent.states), exits.groupsIn(parent), exits)
  return parent.type === 'compound' ? [{ id: startOf(parent), width: MARK, height: MARK }, ...children] : children
}

/** Returns the nodes of states. The states of a group are in a box, which may contain boxes of smaller groups. */
function grouped(states: readonly AnyStateNode[], groups: readonly ExitGroup[], exits: CommonExits): ElkNode[] {
  const outer = groups.filter((group) => !groups.some((other) => other !== group && isWithin(group, other)))
  return states.flatMap((state): ElkNode[] => {
    const group = outer.find((one) => one.includes(state))
    if (group === undefined) return [stateNode(state, exits)]
    if (group[0] !== state) return []
    const inner = groups.filter((one) => one !== group && isWithin(one, group))
    return [
      { id: idOf(group), layoutOptions: { ...layered, 'elk.padding': GROUP }, children: grouped(group, inner, exits) },
    ]
  })
}

function stateNode(node: AnyStateNode, exits: CommonExits): ElkNode {
  if (Object.keys(node.states).length > 0) {
    const padding = { 'elk.padding': `[top=${HEADING},left=8,bottom=16,right=8]` }
    return { id: node.id, layoutOptions: { ...layered, ...padding }, children: childrenOf(node, exits) }
  }
  const width = Math.max(84, Math.ceil(node.key.length * NAME_CHARACTER) + 24)
  const last = { layoutOptions: { 'elk.layered.layering.layerConstraint': 'LAST' } }
  return { id: node.id, width, height: STATE_HEIGHT, ...(node.type === 'final' && last) }
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
  if (mark === 'group') {
    return { ...boxOf(placed), path: pathOf(node.parent ?? node), name: '', kind: 'group', description: '' }
  }
  if (mark === 'any') return { ...common, name: 'any state', kind: 'any', description: '' }
  const kind = node.type === 'final' ? 'final' : node.type === 'compound' ? 'compound' : 'atomic'
  return { ...common, name: node.key, kind, description: node.description ?? '' }
}

const anyBox = { width: 96, height: 32 }

/** Returns the id of a line's source. For a group: the id of its first state, and the number of its states. */
function idOf(source: LineSource): string {
  return 'id' in source ? source.id : `${source[0]?.id ?? ''} group ${source.length}`
}

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
