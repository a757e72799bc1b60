/** A host that starts a program, and exits at the end of its stdin while the program runs. Its arguments are those of the program. */
import { createRunContext } from '../run-context.js'
import { processRunner } from '../../../src/runners/process-runner.js'

const { run } = processRunner({ command: process.execPath, args: process.argv.slice(2) })
void run({ id: 'id', subagent: 'name', goal: 'goal' }, createRunContext())
process.stdin.on('end', () => process.exit(0)).resume()
