// extension.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { printExtension } from '../../../src/cli/extension-command.js'
import { taskSubmitSchema } from '../../../src/protocol/task-submission.js'
import { run } from './command-line.js'

async function extension() {
  const dist = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
  onTestFinished(() => rm(dist, { recursive: true }))
  const folder = join(dist, 'extension')
  await mkdir(folder)
  await writeFile(join(folder, 'manifest.json'), '{}')
  return { folder, zip: join(dist, 'agent-tasks-extension.zip') }
}

function print(files: { folder: string; zip: string }, isJson: boolean): string {
  const written: string[] = []
  const stdout = { write: (text: string) => written.push(text) }
  printExtension(files, isJson, { stdout, stderr: stdout, env: {}, readStdin: () => Promise.resolve('') })
  return written.join('')
}

it('prints the folder, and the steps to load it', async () => {
  const files = await extension()
  const text = print(files, false)
  expect(text.split('\n')[0]).toBe(`The extension for Chrome, Chromium and Edge (125 or newer) is in ${files.folder}`)
  expect(text).toMatch(
    /1\. .*npx agent-tasks serve\n2\. .*chrome:\/\/extensions.*\n3\. .*Load unpacked.*\n4\. .*\n {3}echo .* \| npx agent-tasks submit - --instance browser/,
  )
  const [, example = ''] = /echo '(.*)' \|/.exec(text) ?? []
  expect(taskSubmitSchema().parse(JSON.parse(example)).commands).toHaveLength(2)
})

it('prints JSON', async () => {
  const files = await extension()
  expect(JSON.parse(print(files, true))).toEqual(files)
})

it('says what to do when it is not built', () => {
  const files = { folder: '/nowhere/extension', zip: '/nowhere/x.zip' }
  expect(() => print(files, false)).toThrow(
    'There is no extension in /nowhere/extension. In a checkout, run npm run build; otherwise install agent-tasks again.',
  )
})

it('looks in the package that it belongs to', async () => {
  const { exitCode, stdout, stderr } = await run(['extension'])
  // Whether this checkout is built.
  expect([0, 2]).toContain(exitCode)
  expect(stdout + stderr).toContain(join('dist', 'extension'))
})
