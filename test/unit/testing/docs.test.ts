/** docs/testing.md shows the files in docs/examples/testing as they are. The files that no other test runs are run here. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cancelAllProperty } from '../../../docs/examples/testing/manager-commands.js'
import { judge } from '../../../docs/examples/testing/production-log.js'
import { shop } from '../../../docs/examples/testing/shop.js'
import { hastyHost, hostWithTurns } from '../../../docs/examples/testing/first-host.js'
import { forgetfulHost } from '../../../docs/examples/testing/crashed-host.js'
import { naiveTrigger } from '../../../docs/examples/testing/lost-completion.js'
import { exploreRaces, type RaceError } from 'agent-tasks/testing'
import { checkProperty } from '../../support/property.js'

// It registers its tests here, as it would in a user's project.
import '../../../docs/examples/testing/with-vitest.js'

const folder = 'docs/examples/testing'
const page = readFileSync('docs/testing.md', 'utf8')

/** The code blocks of the page, without their fences. */
const blocks = Array.from(page.matchAll(/^```\w*\n(.*?)^```$/gms), ([, text = '']) => text)

describe('docs/testing.md', () => {
  it.each(readdirSync(folder))(`shows ${folder}/%s as it is`, (name) => {
    expect(blocks).toContain(`// ${folder}/${name}\n${readFileSync(`${folder}/${name}`, 'utf8')}`)
  })

  it('shows the error message of its first example', async () => {
    const error = await exploreRaces({ ...naiveTrigger, mode: 'exhaustive' }).catch((error: unknown) => error)
    expect(blocks).toContain(`${(error as Error).message}\n`)
  })

  it('shows the last lines of the failure of its first host', async () => {
    const error = await exploreRaces({ ...hastyHost, mode: 'exhaustive' }).catch((error: unknown) => error)
    const { message } = error as RaceError
    expect(blocks).toContain(`${message.slice(message.indexOf('84 of 257'))}\n`)
    expect(await exploreRaces({ ...hostWithTurns, mode: 'exhaustive' })).toMatchObject({ orders: 117 })
  })

  it('shows the timeline of its crash', async () => {
    const error: unknown = await exploreRaces({ ...forgetfulHost, mode: 'exhaustive' }).catch((error: unknown) => error)
    expect(blocks).toContain(`${(error as RaceError).timeline}\n`)
  })

  it('shows a first race that fails', async () => {
    await expect(exploreRaces(shop)).rejects.toThrow("'no more is sold than was in stock' does not hold")
  })

  it('shows how to judge a log', async () => {
    expect(await judge(() => Promise.resolve())).toEqual([])
  })

  it('shows how to add a command to the kit', async () => {
    await checkProperty('cancel all', cancelAllProperty)
  })
})
