/** The files of the page, from a folder of the test. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createStaticFiles, pageFolder } from '../../../src/page/static-files.js'

const CONTENT = {
  'index.html': '<!doctype html><title>Tasks</title>',
  'assets/index-4fKq2LbN.js': 'export const tasks = 1\n'.repeat(20),
  'assets/index-4fKq2LbN.css': 'body { margin: 0 }',
  'notes.bin': 'bytes',
}

async function withFiles(content: Readonly<Record<string, string>> = CONTENT) {
  const parent = await mkdtemp(join(tmpdir(), 'page-files-'))
  const folder = join(parent, 'page')
  for (const [name, text] of Object.entries(content)) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  await writeFile(join(parent, 'secret.txt'), 'secret')
  const files = createStaticFiles(folder)
  const server = createServer((request, response) => files.serve(request.url ?? '', request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await rm(parent, { recursive: true })
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    fetch(base + path, { method, headers: { 'accept-encoding': 'identity', ...headers } })
  return { folder, get }
}

it.each([
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/index.html', 'index.html', 'text/html; charset=utf-8'],
  ['/assets/index-4fKq2LbN.js', 'assets/index-4fKq2LbN.js', 'text/javascript; charset=utf-8'],
  ['/assets/index-4fKq2LbN.css', 'assets/index-4fKq2LbN.css', 'text/css; charset=utf-8'],
  ['/notes.bin', 'notes.bin', 'application/octet-stream'],
] as const)('%s has its type, its length and its text', async (path, name, type) => {
  const { get } = await withFiles()
  const response = await get(path)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
  expect(response.headers.get('content-length')).toBe(String(CONTENT[name].length))
  expect(await response.text()).toBe(CONTENT[name])
})

it('is zipped for whoever takes that, and only then', async () => {
  const { get } = await withFiles()
  const path = '/assets/index-4fKq2LbN.js'
  const zipped = await get(path, { 'accept-encoding': 'br, gzip;q=0.8' })
  expect([zipped.headers.get('content-encoding'), zipped.headers.get('vary')]).toEqual(['gzip', 'accept-encoding'])
  expect(Number(zipped.headers.get('content-length'))).toBeLessThan(100)
  // fetch has unzipped it.
  expect(await zipped.text()).toBe(CONTENT['assets/index-4fKq2LbN.js'])
  const plain = await get(path)
  expect(plain.headers.get('content-encoding')).toBeNull()
  await plain.body?.cancel()
})

it('is not sent again to whoever has it, and a file whose name has a hash never changes', async () => {
  const { get } = await withFiles()
  for (const [path, caching] of [
    ['/', 'no-cache'],
    ['/notes.bin', 'no-cache'],
    ['/assets/index-4fKq2LbN.js', 'public, max-age=31536000, immutable'],
  ] as const) {
    const first = await get(path)
    await first.body?.cancel()
    expect([path, first.headers.get('cache-control')]).toEqual([path, caching])
    const again = await get(path, { 'if-none-match': first.headers.get('etag') ?? '' })
    expect([again.status, await again.text()]).toEqual([304, ''])
    const other = await get(path, { 'if-none-match': 'W/"other"' })
    await other.body?.cancel()
    expect(other.status).toBe(200)
  }
})

it('a HEAD has the head alone', async () => {
  const { get } = await withFiles()
  const response = await get('/', {}, 'HEAD')
  expect([response.status, response.headers.get('content-length')]).toEqual([200, String(CONTENT['index.html'].length)])
  expect(await response.text()).toBe('')
})

it.each(['/none', '/assets', '/assets/', '/../secret.txt', '/assets/../index.html?x', '/constructor'])(
  '%s is not found',
  async (path) => {
    const { get } = await withFiles()
    const response = await get(path.replace('..', '%2e%2e'))
    expect([response.status, await response.json()]).toEqual([404, { error: 'Not found', code: 'NOT_FOUND' }])
  },
)

it('without a build it says what to do, and another path is not found', async () => {
  const { get, folder } = await withFiles({})
  const response = await get('/')
  expect([response.status, await response.json()]).toEqual([
    503,
    { error: `The page is not built: there is no ${folder}. Run npm run build.`, code: 'NOT_BUILT' },
  ])
  expect((await get('/none')).status).toBe(404)
})

it('the built page is in dist/page', () => {
  expect(pageFolder()).toMatch(/[\\/]dist[\\/]page$/)
})
