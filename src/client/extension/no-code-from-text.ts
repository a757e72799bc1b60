/** Keeps zod from compiling schemas to code, which the content security policy of the extension forbids. */
import { z } from 'zod'

z.config({ jitless: true })
