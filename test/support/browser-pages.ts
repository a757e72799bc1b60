/**
 * Programs for a browser that use the built package as an application does. The package is installed in a separate project, and esbuild bundles each
 * program. A server on the loopback interface serves each one as the script of an empty page.
 */
import { build } from 'esbuild'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export interface BrowserPages {
  /** The URL of a program's page. */
  urlOf(program: string): string
  /** The requested paths, in order. */
  readonly requests: readonly string[]
  /** The served files that contain a text. */
  filesWith(text: string): string[]
}

const root = fileURLToPath(new URL('../../', import.meta.url))
/** The packages that `agent-tasks`, `agent-tasks/inspect` and `agent-tasks/client` may import. npm installs them together with `agent-tasks`. */
const OWN_DEPENDENCIES = ['rxjs', 'ws', 'xstate', 'zod']

/**
 * @param programs files of test/support/programs, without their extension
 * @param peers other packages that the application has installed
 * @throws Error when the package was not built, or a program cannot be bundled
 */
export async function servePages(programs: readonly string[], peers: readonly string[] = []): Promise<BrowserPages> {
  const project = await installIn(await mkdtemp(join(tmpdir(), 'agent-tasks-pages-')), programs, peers)
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: programs.map((program) => `${program}.mjs`),
    outdir: join(project, 'served'),
    bundle: true,
    splitting: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2023',
    write: false,
    logLevel: 'silent',
  })
  const files = new Map(outputFiles.map((file) => [file.path.slice(join(project, 'served').length), file.text]))
  const requests: string[] = []
  const server = createServer(({ url: path = '/' }, response) => {
    requests.push(path)
    const [, program = ''] = /^\/([\w-]+)$/.exec(path) ?? []
    const [type, body] = programs.includes(program)
      ? [
          'text/html',
          `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/${program}.js"></script>`,
        ]
      : ['text/javascript', files.get(path)]
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': `${type}; charset=utf-8` }).end(body)
  }).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    urlOf: (program) => `http://127.0.0.1:${port}/${program}`,
    requests,
    filesWith: (text) => [...files].flatMap(([path, body]) => (body.includes(text) ? [path] : [])),
  }
}

async function installIn(project: string, programs: readonly string[], peers: readonly string[]): Promise<string> {
  onTestFinished(() => rm(project, { recursive: true, force: true }))
  const dist = join(root, 'dist')
  if (!existsSync(join(dist, 'src/index.js'))) throw new Error('The package is not built. Build it with: npm run build')
  const installed = join(project, 'node_modules/agent-tasks')
  await cp(dist, join(installed, 'dist'), { recursive: true })
  await cp(join(root, 'package.json'), join(installed, 'package.json'))
  for (const name of [...OWN_DEPENDENCIES, ...peers]) {
    await mkdir(dirname(join(project, 'node_modules', name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(project, 'node_modules', name))
  }
  for (const program of programs) {
    await cp(join(root, `test/support/programs/${program}.mjs`), join(project, `${program}.mjs`))
  }
  return project
}
