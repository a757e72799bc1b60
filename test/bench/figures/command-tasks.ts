/** P6: command tasks a second through one lane, and through the queues that people use. */
import type { Figure, Row } from '../figure.js'
import { interleave, ratioOf } from '../interleave.js'
import type { SubjectSpec } from '../subject.js'

const spec = (create: string, params: unknown): SubjectSpec => ({ module: 'command-tasks', create, params })

export const oneLane: Figure = {
  id: 'P6',
  title: 'Tasks a second through one lane',
  async measure({ effort }) {
    const rows: Row[] = []
    for (const commands of [1, 5]) {
      const { lane, queue, fast } = await interleave(
        {
          lane: spec('laneTasks', { commands }),
          queue: spec('queuedTasks', { commands }),
          fast: spec('fastTasks', { commands }),
        },
        effort,
      )
      rows.push({
        figure: 'P6',
        name: `tasks of ${commands} command${commands === 1 ? '' : 's'} through a lane`,
        value: 1e9 / lane.cpuNs.median,
        unit: 'a second',
        ratio: ratioOf(queue, lane),
        reference: 'p-queue, concurrency 1',
        goal: { atLeast: 0.3 },
        note: `p-queue does ${Math.round(1e9 / queue.cpuNs.median).toLocaleString('en-GB')}, fastq ${Math.round(1e9 / fast.cpuNs.median).toLocaleString('en-GB')} a second`,
      })
    }
    return rows
  },
}
