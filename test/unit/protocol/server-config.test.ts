// The configuration of the server: the source of each setting, and errors.
import { describe, expect, it } from 'vitest'
import { InvalidSettingError } from '../../../src/errors.js'
import { resolveServerConfig, type ConfigSources } from '../../../src/protocol/server-config.js'

describe('resolveServerConfig', () => {
  it('has the documented defaults', () => {
    expect(resolveServerConfig()).toMatchObject({
      host: '127.0.0.1',
      port: 3300,
      logLevel: 'info',
      auth: { tokens: [] },
      cors: { origins: [] },
      tasks: { enabled: true, wsPort: 3400, commandTimeout: 60_000, maxQueueSize: 100 },
      limits: { bodyBytes: 1_048_576, frameBytes: 1_048_576 },
    })
  })

  it('prefers options to the environment, the environment to the file, and the file to the defaults', () => {
    const options = { port: 1 }
    const env = { PORT: '2', TASKS_WS_PORT: '3' }
    const file = { port: 4, tasks: { wsPort: 5, maxQueueSize: 6 } }
    const { port, tasks } = resolveServerConfig({ options, env, file })
    expect([port, tasks.wsPort, tasks.maxQueueSize, tasks.commandTimeout]).toEqual([1, 3, 6, 60_000])
    expect(resolveServerConfig({ env, file }).port).toBe(2)
    expect(resolveServerConfig({ file }).port).toBe(4)
    expect(resolveServerConfig({ options: { port: undefined }, file }).port).toBe(4)
  })

  it('reads every variable', () => {
    const env = {
      HOST: 'localhost',
      PORT: '0',
      TASKS_WS_PORT: '1',
      TASKS_ENABLED: 'false',
      TASKS_COMMAND_TIMEOUT: '5',
      TASKS_MAX_QUEUE_SIZE: '0',
      AUTH_TOKENS: 'a, b,',
      CORS_ORIGINS: 'https://a.example,null',
      LOG_LEVEL: 'debug',
      TLS_CERT_PATH: '/cert',
      TLS_KEY_PATH: '/key',
      ALLOWED_HOSTS: 'a.internal',
    }
    expect(resolveServerConfig({ env })).toMatchObject({
      host: 'localhost',
      port: 0,
      tasks: { wsPort: 1, enabled: false, commandTimeout: 5, maxQueueSize: 0 },
      auth: { tokens: ['a', 'b'] },
      cors: { origins: ['https://a.example', 'null'] },
      allowedHosts: ['a.internal'],
      tls: { certPath: '/cert', keyPath: '/key' },
      logLevel: 'debug',
    })
  })

  it('ignores an empty variable', () => {
    expect(resolveServerConfig({ env: { PORT: '', AUTH_TOKENS: '' } })).toMatchObject({
      port: 3300,
      auth: { tokens: [] },
    })
  })

  it.each<[string, ConfigSources, string]>([
    ['PORT', { env: { PORT: 'abc' } }, 'Setting PORT: got "abc", expected an integer from 0 to 65535.'],
    ['PORT', { env: { PORT: '65536' } }, 'Setting PORT: got 65536, expected an integer from 0 to 65535.'],
    ['PORT', { env: { PORT: '1.5' } }, 'Setting PORT: got "1.5", expected an integer from 0 to 65535.'],
    ['port', { options: { port: '80a' } as never }, 'Setting port: got "80a", expected an integer from 0 to 65535.'],
    ['port', { options: { port: -1 } }, 'Setting port: got -1, expected an integer from 0 to 65535.'],
    [
      'TASKS_WS_PORT',
      { file: { tasks: { wsPort: '1' } } },
      'Setting TASKS_WS_PORT (tasks.wsPort in the file): got "1", expected an integer from 0 to 65535.',
    ],
    [
      'TASKS_WS_PORT',
      { env: { PORT: '5', TASKS_WS_PORT: '5' } },
      'Setting TASKS_WS_PORT: got 5, expected another port than PORT.',
    ],
    [
      'TASKS_ENABLED',
      { env: { TASKS_ENABLED: 'maybe' } },
      'Setting TASKS_ENABLED: got "maybe", expected true or false.',
    ],
    [
      'TASKS_COMMAND_TIMEOUT',
      { env: { TASKS_COMMAND_TIMEOUT: '0' } },
      'Setting TASKS_COMMAND_TIMEOUT: got 0, expected an integer from 1 to 86400000.',
    ],
    [
      'TASKS_MAX_QUEUE_SIZE',
      { env: { TASKS_MAX_QUEUE_SIZE: '-1' } },
      'Setting TASKS_MAX_QUEUE_SIZE: got -1, expected an integer from 0 to 1000000.',
    ],
    [
      'LOG_LEVEL',
      { env: { LOG_LEVEL: 'loud' } },
      'Setting LOG_LEVEL: got "loud", expected silent, error, warn, info or debug.',
    ],
    [
      'CORS_ORIGINS',
      { env: { CORS_ORIGINS: '*' } },
      'Setting CORS_ORIGINS: got an array of 1, expected a list of origins',
    ],
    [
      'TLS_KEY_PATH',
      { env: { TLS_CERT_PATH: '/cert' } },
      'Setting TLS_KEY_PATH: got undefined, expected a path, because TLS_CERT_PATH is set.',
    ],
    [
      'HOST',
      { env: { HOST: '0.0.0.0' } },
      'Setting HOST: got "0.0.0.0", expected a loopback address, or AUTH_TOKENS with at least one token.',
    ],
    [
      'limits.nesting',
      { options: { limits: { nesting: 0 } } },
      'Setting limits.nesting: got 0, expected an integer from 1 to 100.',
    ],
  ])(
    'stops at a value of %s that is not allowed, and says its name, the value and what is',
    (_name, sources, message) => {
      const start = () => resolveServerConfig(sources)
      expect(start).toThrow(InvalidSettingError)
      expect(start).toThrow(message)
    },
  )

  it('refuses a misspelt name', () => {
    expect(() => resolveServerConfig({ file: { tasks: { wsprot: 1 } } })).toThrow(
      /Setting file\.tasks\.wsprot: .*expected a known name; the nearest is wsPort/,
    )
    expect(() => resolveServerConfig({ file: { prot: 80 }, fileName: 'a.json' })).toThrow(
      'Setting file.prot in a.json: got 80, expected a known name; the nearest is port.',
    )
    expect(() => resolveServerConfig({ options: { prot: 1 } as never })).toThrow(
      /Setting options\.prot: .*the nearest is port/,
    )
    expect(() => resolveServerConfig({ file: [] })).toThrow('Setting file: got an empty array, expected an object.')
    expect(() => resolveServerConfig({ file: { tasks: 5 } })).toThrow('Setting file.tasks: got 5, expected an object.')
  })

  it('never shows a token', () => {
    const error = (sources: ConfigSources): string => {
      try {
        return JSON.stringify(resolveServerConfig(sources))
      } catch (reason) {
        return `${String(reason)} ${JSON.stringify(reason)}`
      }
    }
    for (const sources of [
      { env: { AUTH_TOKENS: 'se cret' } },
      { options: { auth: { tokens: ['se cret'] } } },
      { file: { auth: { token: 'se cret' } } },
    ]) {
      expect(error(sources as ConfigSources)).not.toContain('cret')
    }
  })
})
