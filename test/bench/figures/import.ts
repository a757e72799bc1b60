/** P10: how long the package takes to import, and what that loads. */
import type { Figure } from '../figure.js'
import { runProgram } from '../programs.js'
import { sampleOf } from '../statistics.js'

interface ImportSize {
  readonly own: { readonly files: number; readonly bytes: number }
  readonly all: { readonly files: number; readonly bytes: number }
  readonly packages: readonly string[]
}

const kib = (bytes: number): string => `${Math.round(bytes / 1024)} KiB`

export const importing: Figure = {
  id: 'P10',
  title: 'Import',
  async measure({ effort }) {
    const times: number[] = []
    const ratios: number[] = []
    const rounds = 3 * effort.rounds
    // The first round only fills the cache of the disk. A round is short, and a process starts how the machine likes it: hence more of them.
    for (let round = 0; round <= rounds; round += 1) {
      const ours = (await runProgram('import-time', ['package'])) as number
      const theirs = (await runProgram('import-time', ['dependencies'])) as number
      if (round === 0) continue
      times.push(ours)
      ratios.push(ours / theirs)
    }
    const { own, all, packages } = (await runProgram('import-size')) as ImportSize
    return [
      {
        figure: 'P10',
        name: "time to import 'agent-tasks'",
        value: sampleOf(times).median,
        unit: 'ms',
        ratio: sampleOf(ratios),
        reference: 'importing xstate, rxjs and zod',
        goal: { atMost: 1.25 },
        note: `${own.files} files of its own (${kib(own.bytes)}), ${all.files} with ${packages.join(', ')} (${kib(all.bytes)})`,
      },
    ]
  },
}
