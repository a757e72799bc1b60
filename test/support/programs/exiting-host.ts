/** A host that starts a program and exits while it runs: at the end of stdin. Arguments: those of the program. */
import { createRunContext } from '../run-context.js'
import { processRunner } from '../../../src/runners/process-runner.js'

const { run } = processRunner({ command: process.execPath, args: process.argv.slice(2) })
void run({ id: 'id', subagentName: 'name', goalPrompt: 'goal' }, createRunContext())
process.stdin.on('end', () => process.exit(0)).resume()
