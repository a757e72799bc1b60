/** Commands, streams of output and previews of results, for any input. */
import { describe, it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { outputFilesProperty } from './output-files.property.js'
import { outputStreamProperty } from './output-stream.property.js'
import { resultPreviewProperty } from './result-preview.property.js'
import { runCommandProperty } from './run-command.property.js'

describe('run_command', () => {
  it('F1: starts only what is allowed, with what was asked for', () =>
    checkProperty('commands', runCommandProperty(), { numRuns: 60 }))
})

describe('the output of a task', () => {
  it('F2: is followed from any cursor to the end, and kept when the task is stopped', () =>
    checkProperty('output streams', outputStreamProperty()))

  it('F2: is in a file up to its limit, which is removed with the record', () =>
    checkProperty('output files', outputFilesProperty()))
})

describe('a result that is too long for a message', () => {
  it('F3: is a preview of 2 KB with both ends of its texts, and the call that reads all of it', () =>
    checkProperty('previews', resultPreviewProperty()))
})
