/**
 * A program that receives commands from the test over a connection, and that may start another program of this kind. It ends when its connection ends,
 * so that no program outlives its test.
 *
 * Its argument is JSON: { port, name, ignoresSigterm?, child?: { name, output: 'inherit' | 'ignore', detached?, isHidden?, … } }.
 * A hidden child does not have the token of the run in its environment.
 * It sends "<name> <pid>" when it has connected, and "SIGTERM" when it ignores that signal. It takes the commands "print <hex>" and "exit <code>".
 */
import { Buffer } from 'node:buffer'
import { spawn } from 'node:child_process'
import { writeSync } from 'node:fs'
import { connect } from 'node:net'
import process from 'node:process'
import { createInterface } from 'node:readline'

const { port, name, ignoresSigterm, child } = JSON.parse(process.argv[2])

const line = connect(port, '127.0.0.1', () => line.write(`${name} ${process.pid}\n`))
line.on('close', () => process.exit(99))
line.on('error', () => undefined)
if (ignoresSigterm) process.on('SIGTERM', () => line.write('SIGTERM\n'))
createInterface({ input: line }).on('line', (told) => {
  const [verb, value] = told.split(' ')
  if (verb === 'print') writeSync(1, Buffer.from(value, 'hex'))
  if (verb === 'exit') process.exit(Number(value))
})
if (child) {
  const stdio = ['ignore', child.output, child.output]
  const spec = JSON.stringify({ port, ...child })
  const env = child.isHidden === true ? { ...process.env, AGENT_TASKS_RUN: undefined } : process.env
  spawn(process.execPath, [process.argv[1], spec], { stdio, env, detached: child.detached === true })
}
