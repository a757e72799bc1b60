#!/usr/bin/env node
/** The program `agent-tasks`. */
import { argv, env, stderr, stdin, stdout } from 'node:process'

const args = argv.slice(2)
if (args[0] === 'hook') {
  // Clients run it at the end of each turn, so it loads only this.
  const { runHookCommand } = await import('../features/hooks/hook-command.js')
  const output = await runHookCommand(args.slice(1))
  stderr.write(output.stderr ?? '')
  stdout.write(output.stdout)
  process.exitCode = output.exitCode ?? 0
} else {
  const [{ text }, { packageVersion }, { endOnBrokenPipe }, { runProgram }] = await Promise.all([
    import('node:stream/consumers'),
    import('../system/version.js'),
    import('./broken-pipe.js'),
    import('./program.js'),
  ])
  endOnBrokenPipe(args[0], { stdout, stderr })
  process.exitCode = await runProgram(args, { stdout, stderr, env, readStdin: () => text(stdin) }, packageVersion)
}
