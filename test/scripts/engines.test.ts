/** The packages that `npm ci` installs accept the Node of these tests. npm only warns when one does not, and .npmrc leaves out its warnings. */
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

/** The AI SDK 7, and the client of OpenAI Agents. They ask for Node 22; the tests of the adapters show that they work on Node 20. */
const EXCEPTIONS = ['@ai-sdk/gateway', '@ai-sdk/provider', '@ai-sdk/provider-utils', 'ai', 'openai']

it('no package asks for another Node, except two SDKs that are tested on Node 20', () => {
  const options = ['--dry-run', '--offline', '--ignore-scripts', '--loglevel=warn']
  const { status, stderr } = spawnSync('npm', ['ci', ...options], { encoding: 'utf8' })
  expect(status, stderr).toBe(0)
  const asking = Array.from(stderr.matchAll(/package: '(.+)@[^@']+'/g), ([, name]) => name)
  expect(asking.filter((name = '') => !EXCEPTIONS.includes(name))).toEqual([])
  if (process.version.startsWith('v20.')) expect(asking.toSorted()).toEqual(EXCEPTIONS)
})
