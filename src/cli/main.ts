#!/usr/bin/env node
/** The program `agent-tasks`. */
import { text } from 'node:stream/consumers'
import { packageVersion } from '../system/version.js'
import { endOnBrokenPipe } from './broken-pipe.js'
import { runProgram } from './program.js'

const { stdout, stderr, env, stdin } = process
const args = process.argv.slice(2)
endOnBrokenPipe(args[0], { stdout, stderr })
process.exitCode = await runProgram(args, { stdout, stderr, env, readStdin: () => text(stdin) }, packageVersion)
