/** `agent-tasks extension`: prints the folder of the browser extension, and explains how to load the extension. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { AgentTasksError } from '../errors.js'
import { createTerminal, type ProgramIO } from './terminal.js'

export function addExtensionCommand(program: Command, io: ProgramIO): void {
  program
    .command('extension')
    .description('print the folder of the browser extension, and how to load it in Chrome')
    .option('--json', 'print JSON: the folder, and the archive of it')
    .addHelpText(
      'after',
      `
The archive has the same files. Use it to copy the extension to another machine.

Examples:
  $ agent-tasks extension
  $ agent-tasks extension --json | jq -r .zip`,
    )
    .action(({ json }: { readonly json?: boolean }) => printExtension(extensionFiles(), json === true, io))
}

export interface ExtensionFiles {
  readonly folder: string
  readonly zip: string
}

function extensionFiles(): ExtensionFiles {
  const dist = join(dirname(createRequire(import.meta.url).resolve('agent-tasks/package.json')), 'dist')
  return { folder: join(dist, 'extension'), zip: join(dist, 'agent-tasks-extension.zip') }
}

/** @throws AgentTasksError `NOT_BUILT` when the folder does not contain the extension */
export function printExtension({ folder, zip }: ExtensionFiles, isJson: boolean, io: ProgramIO): void {
  if (!existsSync(join(folder, 'manifest.json'))) {
    throw new AgentTasksError(
      'NOT_BUILT',
      `There is no extension in ${folder}. In a checkout, run npm run build; otherwise install agent-tasks again.`,
    )
  }
  const terminal = createTerminal(io, 'stdout')
  if (isJson) {
    terminal.printJson({ folder, zip })
    return
  }
  for (const line of [
    `The extension for Chrome, Chromium and Edge (125 or newer) is in ${folder}`,
    '1. Start a server, if none runs, and leave it running: npx agent-tasks serve',
    '2. Open chrome://extensions and switch on Developer mode.',
    '3. Choose "Load unpacked" and that folder. The options page of the extension opens, and says when it is connected.',
    '4. Try it in another terminal:',
    `   echo '${EXAMPLE}' | npx agent-tasks submit - --instance browser`,
  ]) {
    terminal.print(line)
  }
}

const EXAMPLE = JSON.stringify({
  task_name: 'Look',
  commands: [
    { tool_name: 'browser_navigate', args: { url: 'https://example.org' } },
    { tool_name: 'browser_snapshot', args: {} },
  ],
})
