/** P5: what a live task and a retained record take of the heap, and whether it grows. */
import type { Figure } from '../figure.js'
import { runProgram } from '../programs.js'
import { regression, sampleOf } from '../statistics.js'

/** Bytes a life that a curve of the heap cannot be told from a flat one. */
const NOISE_BYTES = 0.5

export const heap: Figure = {
  id: 'P5',
  title: 'Heap',
  async measure({ isQuick, effort }) {
    const count = isQuick ? 2000 : 20_000
    const compare = async (subject: string, reference: string) => {
      const bytes: number[] = []
      const ratios: number[] = []
      for (let round = 0; round < (isQuick ? 5 : Math.min(effort.rounds, 7)); round += 1) {
        const ours = (await runProgram('heap', [subject, `${count}`])) as number
        const theirs = (await runProgram('heap', [reference, `${count}`])) as number
        bytes.push(ours)
        ratios.push(ours / theirs)
      }
      return { value: sampleOf(bytes).median, ratio: sampleOf(ratios) }
    }
    const lives = isQuick ? 20_000 : 1_000_000
    const points = (await runProgram('heap', ['growth', `${lives}`])) as [number, number][]
    const { slope, error } = regression(points)
    return [
      {
        figure: 'P5',
        name: 'heap of a live task',
        unit: 'bytes',
        ...(await compare('live', 'actors')),
        reference: 'a bare started actor',
        goal: { atMost: 1.3 },
      },
      {
        figure: 'P5',
        name: 'heap of a retained record',
        unit: 'bytes',
        ...(await compare('retained', 'objects')),
        reference: 'a frozen object of its fields',
        goal: { atMost: 2 },
      },
      {
        figure: 'P5',
        name: `heap growth over ${lives.toLocaleString('en-GB')} lives`,
        value: Math.max(0, slope - 2 * error),
        unit: 'bytes a life',
        // A short run still has caches to fill.
        ...(!isQuick && { goal: { atMost: NOISE_BYTES } }),
        note: `slope ${slope.toFixed(3)} +- ${(2 * error).toFixed(3)} bytes a life (twice the standard error)`,
      },
    ]
  },
}
