/** The policy of the extension forbids zod to compile schemas. */
import { z } from 'zod'

z.config({ jitless: true })
