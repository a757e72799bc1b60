import { describe, expect, it } from 'vitest'
import * as machines from '../../machines/index.js'
import { READABLE, type Box, type ChartEdge, type MachineChart, type Point } from '../../src/page/app/chart.js'
import { layOut } from '../../scripts/chart-layout.js'
import { isMachine, statesOf, transitionsOf } from '../../scripts/charts.js'

/** The box of a drawing in a window of 390 px. */
const PHONE_BOX = 364

const all = Object.values(machines).filter(isMachine)

describe.each(all)('the drawing of $id', (machine) => {
  it('has every state of the machine, and every transition that leads to one', async () => {
    const chart = await layOut(machine)
    const drawn = chart.states.filter(({ kind }) => kind !== 'start' && kind !== 'any' && kind !== 'group')
    const paths = statesOf(machine).flatMap(({ path }) => (path === '' ? [] : [path]))
    expect(drawn.map(({ path }) => path).sort()).toEqual(paths.sort())
    for (const { from, target, event, guard } of transitionsOf(machine)) {
      if (target === undefined) continue
      const line = chart.edges.find(
        (edge) =>
          (from === machine.root ? edge.from.length === 0 : edge.from.includes(from.path.join('.'))) &&
          edge.to === target.path.join('.') &&
          edge.labels.some(({ text }) => text === (guard === undefined ? event : `[${guard}]`) || event === 'always'),
      )
      const shown = event === 'always' ? '[' : event
      expect(
        line?.labels.some(({ text }) => text.startsWith(shown)),
        `${from.id}: ${event}`,
      ).toBe(true)
      if (guard !== undefined) expect(line?.labels.map(({ text }) => text)).toContain(`[${guard}]`)
    }
  })

  it('has no label upon another, upon a state or outside', async () => {
    const chart = await layOut(machine)
    const labels = chart.edges.flatMap((edge) => edge.labels)
    const solid = chart.states.filter(({ kind }) => kind !== 'compound' && kind !== 'group')
    const touching = labels.flatMap((label, index) => [
      ...labels.slice(index + 1).filter((other) => overlap(label, other)),
      ...solid.filter((state) => overlap(label, state)),
    ])
    expect(touching).toEqual([])
    for (const box of [...labels, ...chart.states]) expect(isInside(box, chart), JSON.stringify(box)).toBe(true)
  })

  it('has no line through a state, nor under a label of another', async () => {
    const chart = await layOut(machine)
    const solid = chart.states.filter(({ kind }) => kind === 'atomic' || kind === 'final')
    const crossings = chart.edges.flatMap((edge) => {
      const others = chart.edges.filter((other) => other !== edge).flatMap(({ labels }) => labels)
      return segmentsOf(edge.points).flatMap((segment) =>
        [...solid, ...others].filter((box) => overlap(segment, shrunk(box))).map((box) => ({ edge: edge.to, box })),
      )
    })
    expect(crossings).toEqual([])
  })

  it('has in the box of a group its states and no others', async () => {
    const { states, edges } = await layOut(machine)
    const boxes = states.filter(({ kind }) => kind === 'group')
    const groups = new Set(edges.filter(({ from }) => from.length > 1).map(({ from }) => from.join()))
    const solid = states.filter(({ kind }) => kind === 'atomic' || kind === 'final' || kind === 'compound')
    const inBox = boxes.map((box) =>
      solid
        .filter((state) => isWithin(state, box))
        .map(({ path }) => path)
        .filter((path, _, paths) => !paths.some((other) => path.startsWith(`${other}.`)))
        .join(),
    )
    expect(inBox.sort()).toEqual([...groups].sort())
  })

  it('is the same each time', async () => {
    expect(await layOut(machine)).toEqual(await layOut(machine))
  })
})

describe('the drawing of a task', () => {
  it('has what ends a task in every state once', async () => {
    const { edges } = await layOut(machines.asyncTaskMachine)
    const endings = edges.filter(({ to }) => ['completed', 'failed', 'cancelled'].includes(to))
    const textOf = ({ from, to, labels }: ChartEdge): string =>
      `${from.join()} > ${to}: ${labels.map(({ text }) => text).join()}`
    expect(endings.map(textOf)).toEqual([
      'active > completed: task.complete',
      'active > failed: task.fail',
      'active > cancelled: task.cancel',
      'active.stopping > completed: task.complete,[hasOffered],task.fail,[hasOffered],grace.passed,[hasOffered]',
      'active.stopping > failed: task.complete,task.fail,grace.passed',
    ])
  })

  it('has an exit that states share once, from the box round them', async () => {
    const { edges } = await layOut(machines.asyncTaskMachine)
    const shared = edges.filter(({ from }) => from.length > 1)
    expect(shared.map(({ from, to, labels }) => [from.join(), to, labels.map(({ text }) => text).join()])).toEqual([
      ['active.running,active.asking', 'active.queued', 'task.queue'],
      ['active.running,active.asking', 'active.wrapping', 'budget.exceeded'],
      ['active.running,active.asking,active.wrapping', 'active.stopping', 'deadline.passed'],
    ])
    expect(shared[0]?.labels[0]?.description).toMatch(/^running: No slot .*\nasking: The run has failed/)
  })

  it('needs no scrolling on a phone', async () => {
    const { width } = await layOut(machines.asyncTaskMachine)
    expect(PHONE_BOX / width).toBeGreaterThan(READABLE)
  })
})

function overlap(one: Box, other: Box): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  )
}

function isWithin(inner: Box, outer: Box): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  )
}

function isInside({ x, y, width, height }: Box, chart: MachineChart): boolean {
  return x >= 0 && y >= 0 && x + width <= chart.width && y + height <= chart.height
}

function segmentsOf(points: readonly Point[]): Box[] {
  return points.slice(1).map((end, index) => {
    const start = points[index]!
    const [x, y] = [Math.min(start.x, end.x), Math.min(start.y, end.y)]
    return { x, y, width: Math.max(Math.abs(start.x - end.x), 0.1), height: Math.max(Math.abs(start.y - end.y), 0.1) }
  })
}

/** A line ends at the border of its state. */
function shrunk({ x, y, width, height }: Box): Box {
  return { x: x + 1, y: y + 1, width: width - 2, height: height - 2 }
}
