/** P7: tasks over real WebSockets, and raw sockets that carry the same frames. */
import type { Figure } from '../figure.js'
import { interleave, ratioOf } from '../interleave.js'
import { quantile } from '../statistics.js'

export const overSockets: Figure = {
  id: 'P7',
  title: 'Tasks over WebSockets',
  async measure({ effort }) {
    const load = { clients: 10, instances: 10, window: 8 }
    const { tasks, echo } = await interleave(
      {
        tasks: { module: 'sockets', create: 'tasksOverSockets', params: load },
        echo: { module: 'sockets', create: 'echoedFrames', params: load },
      },
      // Long enough that a slice of time which went to another program does not decide a round.
      { ...effort, roundMs: effort.roundMs * 2 },
    )
    const latency = (share: number): string =>
      `${quantile(tasks.durations, share).toFixed(1)} ms (echo ${quantile(echo.durations, share).toFixed(1)} ms)`
    return [
      {
        figure: 'P7',
        name: 'tasks over sockets, 10 clients, 10 instances',
        value: 1e9 / tasks.wallNs.median,
        unit: 'a second',
        ratio: ratioOf(echo, tasks, 'wallNs'),
        reference: 'ws echoing the same frames',
        goal: { atLeast: 0.5 },
        note: `submit to complete: p50 ${latency(0.5)}, p99 ${latency(0.99)}, 8 tasks under way for each client`,
      },
    ]
  },
}
