#!/usr/bin/env node
/** The program `agent-tasks`. */
import { text } from 'node:stream/consumers'
import { packageVersion } from '../version.js'
import { runProgram } from './program.js'

const { stdout, stderr, env, stdin } = process
process.exitCode = await runProgram(
  process.argv.slice(2),
  { stdout, stderr, env, readStdin: () => text(stdin) },
  packageVersion,
)
