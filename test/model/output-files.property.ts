/** F2: the file of a task has its output up to the limit, and is removed with its record. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import type { WrapManager } from './output-stream.property.js'

const text = fc.string({ unit: fc.constantFrom('a', 'ß', '€', '😀', '\n'), maxLength: 20 })
const id = fc.oneof(
  fc.constantFrom('..', '../x', '/x', '~'),
  fc.string({ unit: fc.constantFrom('a', '/', '.', '\\'), minLength: 1 }),
)

/** The whole characters of the first texts that fit, without what follows a gap. */
function fitting(texts: readonly string[], maxBytes: number): string {
  let kept = ''
  for (const character of texts.join('')) {
    if (Buffer.byteLength(kept + character) > maxBytes) return kept
    kept += character
  }
  return kept
}

export function outputFilesProperty(wrap: WrapManager = (manager) => manager) {
  return fc.property(id, fc.array(text, { maxLength: 8 }), fc.constantFrom(1, 16, 65_536), (name, texts, maxBytes) => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-files-'))
    const options = { maxAsyncTasks: 1, clock: createManualClock(), outputFiles: { folder, maxBytes } }
    const manager = wrap(new AsyncTaskManager(options))
    try {
      const end = (taskId: string): void => {
        manager.completeTask(taskId, {})
        manager.markNotified(taskId)
      }
      manager.registerTask({ id: name, subagentName: 'writer', goalPrompt: 'write' })
      for (const each of texts) manager.appendOutput(name, each)
      end(name)
      const { outputFile } = manager.getTask(name) ?? {}
      const written = texts.join('')
      assert.equal(outputFile !== undefined, written !== '', 'F2: a file without output, or output without a file')
      const kept = fitting(texts, maxBytes)
      const left = Buffer.byteLength(written) - Buffer.byteLength(kept)
      const line = `\n[${left} bytes of output are left out here: the limit is ${maxBytes} bytes (outputFiles.maxBytes)]\n`
      const content = outputFile === undefined ? '' : readFileSync(outputFile, 'utf8')
      assert.equal(content, left === 0 ? kept : kept + line, 'F2: not what was written')
      for (const other of ['other 1', 'other 2', 'other 3']) {
        manager.registerTask({ id: other, subagentName: 'writer', goalPrompt: 'write' })
        end(other)
      }
      assert.equal(manager.getTask(name), undefined)
      assert.deepEqual(readdirSync(folder), [], 'F2: a file outlived its record')
    } finally {
      void manager.dispose()
      rmSync(folder, { recursive: true })
    }
  })
}
