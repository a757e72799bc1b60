/** A screen without a monitor (Xvfb), and pictures of it. A browser draws its tabs and tab groups only on a screen. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PNG } from 'pngjs'

export interface VirtualScreen {
  /** The value for the variable `DISPLAY`. */
  readonly display: string
  /** Returns a picture of the screen, as PNG. */
  capture(): Buffer
  close(): Promise<void>
}

/** @throws Error when Xvfb is missing, with the command that installs it */
export async function openVirtualScreen(width: number, height: number): Promise<VirtualScreen> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-screen-'))
  const options = ['-screen', '0', `${width}x${height}x24`, '-fbdir', folder, '-nolisten', 'tcp']
  // Xvfb chooses a free display, and writes its number to this file descriptor.
  const server = spawn('Xvfb', ['-displayfd', '3', ...options], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const exited = once(server, 'exit')
  const failed = once(server, 'error').then(() => {
    throw new Error('There is no Xvfb. Install it with: apt-get install -y xvfb')
  })
  const numbers = createInterface({ input: server.stdio[3] as NodeJS.ReadableStream })
  const [number] = (await Promise.race([once(numbers, 'line'), failed])) as [string]
  return {
    display: `:${number}`,
    capture: () => fromXwd(readFileSync(join(folder, 'Xvfb_screen0'))),
    close: async () => {
      server.kill()
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Converts a picture in the X Window Dump format with 32 bits per pixel. */
function fromXwd(dump: Buffer): Buffer {
  const field = (index: number): number => dump.readUInt32BE(index * 4)
  const [headerSize, width, height, bytesPerLine, colours] = [field(0), field(4), field(5), field(12), field(19)]
  const pixels = headerSize + colours * 12
  const png = new PNG({ width, height })
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = pixels + y * bytesPerLine + x * 4
      const [blue = 0, green = 0, red = 0] = dump.subarray(at, at + 3)
      png.data.set([red, green, blue, 255], (y * width + x) * 4)
    }
  }
  return PNG.sync.write(png)
}
