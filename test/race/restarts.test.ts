import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { restartsProperty } from './restarts.property.js'

it('K12, S1, S3: across crashes an accepted task ends once, in order, with its results, and no instance is given two commands', () =>
  checkProperty('restarts', restartsProperty()))
