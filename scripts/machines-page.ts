/** Makes the page docs/machines.md from the machines: a diagram and tables for each machine. */
import { inputOf } from '../test/support/machine-input.js'
import { pathOf, statesOf, transitionsOf, type Chart, type ChartState, type ChartTransition } from './charts.js'
import type { AnyStateNode } from 'xstate'

const head = `# State machines

<!-- Made by \`npm run docs:machines\` from machines/. Change the machine and run it again. -->

Each machine in \`machines/\`: its input, a diagram, its states and its transitions. \`npm run docs:check\` fails when this page is out of
date. You can open each file in the [Stately editor](https://stately.ai/editor). The registry, the parent of the async tasks, is actor
logic without states: see [architecture.md](architecture.md).

To run a machine by itself, give \`createActor\` the input below; the methods of \`host\` are the effects that you provide. Everything else
is in the machine.

An event in the diagram reads \`event [guard] / actions\`. A note lists the events that do not leave a state.

\`npm run coverage:charts\` fails when no test reaches one of these states or takes one of these transitions. Where the context of a machine is
bounded (\`asyncTask\`, \`commandTask\`, \`lane\`, \`instance\`), the suite \`paths\` takes every path through it: each simple path, and after it
each event that can happen then. \`delivery\` is driven at random, by the suite \`race\`. The actors are those of the
implementation, not actors of the tests.`

/** Returns a problem for each state and transition without a description. */
export function undescribed({ file, machine }: Chart): string[] {
  return [
    ...statesOf(machine)
      .filter(({ description }) => isBlank(description))
      .map(({ id }) => `${file}: the state ${id} has no description`),
    ...transitionsOf(machine)
      .filter(({ description }) => isBlank(description))
      .map(({ from, event }) => `${file}: ${event} of the state ${from.id} has no description`),
  ]
}

/** The whole page. */
export function machinesPage(charts: readonly Chart[]): string {
  return `${[head, ...charts.map(section)].join('\n\n')}\n`
}

/** The diagram of a machine, in mermaid. */
export function diagramOf({ machine }: Chart): string {
  const { root } = machine
  const transitions = transitionsOf(machine)
  return [
    'stateDiagram-v2',
    ...indent([
      ...(transitions.some(({ from }) => from === root) ? [`state "in any state" as ${idOf(root)}`] : []),
      ...inner(root, transitions),
    ]),
  ].join('\n')
}

/** The mermaid id of a state. */
export function idOf({ id }: AnyStateNode): string {
  return id.replaceAll('.', '_')
}

/** The label of a transition. */
export function labelOf({ event, guard, actions }: Pick<ChartTransition, 'event' | 'guard' | 'actions'>): string {
  const condition = guard === undefined ? '' : ` [${guard}]`
  return `${event}${condition}${actions.length > 0 ? ` / ${actions.join(', ')}` : ''}`
}

function inner(parent: AnyStateNode, transitions: readonly ChartTransition[]): string[] {
  const nodes = Object.values(parent.states)
  const initial = parent.type === 'parallel' ? undefined : parent.initial.target[0]
  return [
    ...(initial === undefined ? [] : [`[*] --> ${idOf(initial)}`]),
    ...nodes.flatMap((node, index) => [
      ...(parent.type === 'parallel' && index > 0 ? ['--'] : []),
      `state "${node.key}" as ${idOf(node)}`,
      ...(node.type === 'compound' || node.type === 'parallel'
        ? [`state ${idOf(node)} {`, ...indent(inner(node, transitions)), '}']
        : []),
      ...(node.type === 'final' ? [`${idOf(node)} --> [*]`] : []),
    ]),
    ...transitions.flatMap(({ from, target, ...transition }) =>
      target !== undefined && frameOf(from, target) === parent
        ? [`${idOf(from)} --> ${idOf(target)} : ${labelOf(transition)}`]
        : [],
    ),
    ...[...(parent.parent === undefined ? [parent] : []), ...nodes].flatMap((node) => noteOn(node, transitions)),
  ]
}

/** Returns the state in whose frame an arrow must stand. Mermaid puts a state into every frame that mentions it, except the outermost one. */
function frameOf(from: AnyStateNode, target: AnyStateNode): AnyStateNode {
  const root: AnyStateNode = from.machine.root
  return from.parent === target.parent ? (from.parent ?? root) : root
}

/** Returns a note with the events that do not leave the state. */
function noteOn(node: AnyStateNode, transitions: readonly ChartTransition[]): string[] {
  const staying = transitions.filter(({ from, target }) => from === node && target === undefined)
  const lines = staying.map((transition) => `${labelOf(transition)}${isIgnored(transition) ? ' (ignored)' : ''}`)
  return lines.length === 0 ? [] : [`note right of ${idOf(node)}`, ...indent(lines), 'end note']
}

/** Whether a transition does nothing. A state has such a transition to keep an event from the states around it. */
function isIgnored({ target, actions }: ChartTransition): boolean {
  return target === undefined && actions.length === 0
}

function section(chart: Chart): string {
  const { file, machine } = chart
  const [root, ...states] = statesOf(machine)
  return [
    `## ${machine.id}\n\n[\`${file}\`](../${file}): ${root?.description ?? ''}`,
    `\`\`\`mermaid\n${diagramOf(chart)}\n\`\`\``,
    table(
      ['input', 'type', 'description'],
      inputOf(file).map(({ name, type, description }) => [`\`${name}\``, type, description]),
    ),
    table(['state', 'effects', 'description'], states.map(stateRow)),
    table(['event', 'from', 'guard', 'target', 'actions', 'description'], transitionsOf(machine).map(transitionRow)),
  ].join('\n\n')
}

function stateRow({ node, path, effects, description }: ChartState): string[] {
  const kind =
    node.type === 'final'
      ? ' (final)'
      : node.parent?.type === 'parallel'
        ? ' (with its siblings)'
        : node.parent?.initial.target[0] === node
          ? ' (initial)'
          : ''
  return [`\`${path}\`${kind}`, effects.join('<br>'), description ?? '']
}

function transitionRow(transition: ChartTransition): string[] {
  const { event, from, guard, target, isReentered, actions, description } = transition
  const stays = isIgnored(transition) ? 'ignored' : 'stays'
  const reached = target === undefined ? stays : `\`${pathOf(target)}\`${isReentered ? ' (entered again)' : ''}`
  return [
    `\`${event}\``,
    from.parent === undefined ? 'any state' : `\`${pathOf(from)}\``,
    guard === undefined ? '' : `\`${guard}\``,
    reached,
    actions.map((name) => `\`${name}\``).join(', '),
    description ?? '',
  ]
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}

function isBlank(text: string | undefined): boolean {
  return text === undefined || text.trim() === ''
}
