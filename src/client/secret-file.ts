/** The file in which a worker keeps the id and the secret of its registration. A worker that is started again reads it to resume the registration. */
import { InvalidInputError } from '../errors.js'
import { isNode } from '../system/node-builtins.js'
import { readPrivate, writePrivate } from '../system/private-file.js'
import { registerResponseSchema, type RegisterResponse } from '../protocol/instance-messages.js'

const FIELD = 'options.secretFile'

/** The maximum size of the file, in bytes. */
const MAX_BYTES = 4096

export type KeptRegistration = Pick<RegisterResponse, 'instanceId' | 'secret'>

const keptSchema = registerResponseSchema.pick({ instanceId: true, secret: true })

export interface SecretFile {
  /** The last registration of the worker; undefined before the first one. */
  readonly kept: KeptRegistration | undefined
  /** Writes a registration to the file, unless the file has it already. */
  keep(registration: KeptRegistration): void
}

/**
 * Opens the file of a worker. The file may be absent.
 * @param instanceId the id of the instance, if the caller has chosen one
 * @throws INVALID_INPUT when the file is damaged, belongs to another instance, is readable by others, or cannot be read or written
 */
export function openSecretFile(file: string, instanceId: string | undefined): SecretFile {
  if (!isNode) throw new InvalidInputError(FIELD, file, 'no value, because secretFile works only in Node')
  const text = readPrivate(file, FIELD, MAX_BYTES)
  let kept = text === undefined ? undefined : parse(text)
  if (text !== undefined && kept === undefined) {
    throw new InvalidInputError(FIELD, file, 'a file that connectInstance has written. Delete it to register anew')
  }
  if (kept !== undefined && instanceId !== undefined && kept.instanceId !== instanceId) {
    throw new InvalidInputError(
      FIELD,
      file,
      `the file of instance ${instanceId}, but the file belongs to ${kept.instanceId}. Give each instance a file of its own`,
    )
  }
  return {
    get kept() {
      return kept
    },
    keep: ({ instanceId, secret }) => {
      if (kept?.instanceId === instanceId && kept.secret === secret) return
      // Set before the file is written, so that this process can use the registration also when the file cannot be written.
      kept = { instanceId, secret }
      try {
        writePrivate(file, `${JSON.stringify({ instanceId, secret })}\n`, { replaces: true })
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        throw new InvalidInputError(FIELD, file, `a file that this process can write (${String(code)})`)
      }
    },
  }
}

function parse(text: string): KeptRegistration | undefined {
  try {
    return keptSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
