/**
 * `npm run docs:machines`: writes docs/machines.md from the machines. `npm run docs:check` runs it with `--check`: it writes nothing, and fails when the
 * page is out of date. Both fail when a state or a transition has no description, or when mermaid does not read a diagram as it is meant.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AnyStateNode } from 'xstate'
import { findCharts, statesOf, transitionsOf, type Chart } from './charts.js'
import { diagramOf, idOf, labelOf, machinesPage, undescribed } from './machines-page.js'
import { parseStateDiagram } from './mermaid.js'

const page = 'docs/machines.md'

process.chdir(fileURLToPath(new URL('../', import.meta.url)))

const charts = await findCharts()
const problems = charts.flatMap(undescribed)
for (const chart of charts) problems.push(...(await misread(chart)))

const wanted = machinesPage(charts)
if (process.argv.includes('--check')) {
  const present = existsSync(page) ? readFileSync(page, 'utf8') : ''
  if (present !== wanted) problems.push(`${page}: ${firstDifference(present, wanted)}; run npm run docs:machines`)
} else if (problems.length === 0) writeFileSync(page, wanted)

if (problems.length > 0) {
  console.error(problems.map((problem) => `docs: ${problem}`).join('\n'))
  process.exitCode = 1
} else console.log(`docs: ${page} is up to date (${charts.length} machines)`)

/** Returns where mermaid reads the diagram of a machine wrongly. */
async function misread(chart: Chart): Promise<string[]> {
  const { file, machine } = chart
  try {
    const { nodes, edges } = await parseStateDiagram(diagramOf(chart))
    const frames = new Map(nodes.map(({ id, parentId }) => [id, parentId]))
    const arrows = new Set(edges.map(({ start, end, label }) => `${start} ${end} ${label ?? ''}`))
    return [
      ...statesOf(machine)
        .filter(({ node, path }) => path !== '' && !isInPlace(node, frames))
        .map(({ id }) => `${file}: the diagram does not have the state ${id} in its place`),
      ...transitionsOf(machine).flatMap((transition) => {
        const { from, target } = transition
        if (target === undefined || arrows.has(`${idOf(from)} ${idOf(target)} ${labelOf(transition)}`)) return []
        return [`${file}: the diagram lacks ${labelOf(transition)} of ${from.id}`]
      }),
    ]
  } catch (error) {
    return [`${file}: mermaid does not read its diagram: ${error instanceof Error ? error.message : String(error)}`]
  }
}

function isInPlace(node: AnyStateNode, frames: ReadonlyMap<string, string | undefined>): boolean {
  const { parent } = node
  const frame = parent?.parent === undefined ? undefined : idOf(parent)
  // Mermaid puts each region of a parallel state into a frame of its own, between the state and its child.
  const divider = frames.get(idOf(node))
  const seen = parent?.type === 'parallel' && divider !== undefined ? frames.get(divider) : divider
  return frames.has(idOf(node)) && seen === frame
}

function firstDifference(present: string, expected: string): string {
  if (present === '') return 'does not exist'
  const lines = present.split('\n')
  const line = expected.split('\n').findIndex((text, index) => text !== lines[index])
  return `line ${line === -1 ? lines.length : line + 1} is stale`
}
