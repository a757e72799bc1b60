/** The file in which a worker keeps the id and the secret of its registration, so that it can resume the registration when it is started again. */
import { InvalidInputError } from '../errors.js'
import { isNode } from '../node-builtins.js'
import { readPrivate, writePrivate } from '../private-file.js'
import { registerResponseSchema, type RegisterResponse } from '../protocol/instance-messages.js'

const FIELD = 'options.secretFile'

/** The maximum size of the file, in bytes. */
const MAX_BYTES = 4096

export type KeptRegistration = Pick<RegisterResponse, 'instanceId' | 'secret'>

const keptSchema = registerResponseSchema.pick({ instanceId: true, secret: true })

export interface SecretFile {
  /** The registration that the worker had last. */
  readonly kept: KeptRegistration | undefined
  /** Keeps a registration, unless it is the one that is kept. */
  keep(registration: KeptRegistration): void
}

/**
 * Opens the file of a worker. It need not exist.
 * @param instanceId the id of the instance, if the caller has chosen one
 * @throws InvalidInputError for a file that others can read, that cannot be read or written, that is damaged, or that belongs to another instance
 */
export function openSecretFile(file: string, instanceId: string | undefined): SecretFile {
  if (!isNode) throw new InvalidInputError(FIELD, file, 'nothing: only Node has files, and this is not Node')
  const text = readPrivate(file, FIELD, MAX_BYTES)
  let kept = text === undefined ? undefined : parse(text)
  if (text !== undefined && kept === undefined) {
    throw new InvalidInputError(FIELD, file, 'a file that connectInstance has written. Delete it to register anew')
  }
  if (kept !== undefined && instanceId !== undefined && kept.instanceId !== instanceId) {
    throw new InvalidInputError(
      FIELD,
      file,
      `the file of instance ${instanceId}, but it is that of ${kept.instanceId}. Each instance needs a file of its own`,
    )
  }
  return {
    get kept() {
      return kept
    },
    keep: ({ instanceId, secret }) => {
      if (kept?.instanceId === instanceId && kept.secret === secret) return
      // First, so that this process goes on with it when the file cannot be written.
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
