/** Reads the configuration file, which `CONFIG_FILE` or the option `configFile` names, and the PEM files of TLS. */
import { readFileSync } from 'node:fs'
import { InvalidSettingError } from '../errors.js'
import { parseConfigJson } from '../protocol/config-json.js'
import { describeFailure } from '../protocol/outcomes.js'
import type { ServerConfig } from '../protocol/server-config.js'

/**
 * @param setting what has named the file, for errors
 * @throws INVALID_SETTING when the file cannot be read or is not JSON
 */
export function readConfigFile(path: string | undefined, setting = 'CONFIG_FILE'): unknown {
  if (path === undefined || path === '') return undefined
  const text = read(setting, path, 'the path of a readable JSON file')
  try {
    return parseConfigJson(text)
  } catch (cause) {
    // The message of some errors quotes the text around the mistake, which may contain a secret.
    const reason = describeFailure(cause).replace(/, (?:\.\.\.)?"[^]*$/, '')
    throw new InvalidSettingError(setting, path, `the path of a file that contains JSON (${reason})`)
  }
}

/** Returns the certificate and its private key; undefined without TLS. */
export function readTls({ tls: { certPath, keyPath } }: ServerConfig): { cert: string; key: string } | undefined {
  if (certPath === undefined || keyPath === undefined) return undefined
  const expected = 'the path of a readable PEM file'
  return { cert: read('TLS_CERT_PATH', certPath, expected), key: read('TLS_KEY_PATH', keyPath, expected) }
}

function read(setting: string, path: string, expected: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new InvalidSettingError(setting, path, expected)
  }
}
