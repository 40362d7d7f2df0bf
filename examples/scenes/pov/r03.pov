// A kitchen table in low sun: pepper mill, pear, egg in its cup. All shadows fall to the right.
#include "common.inc"
camera { location <-0.4, 7.2, -13> right x*4/3 up y look_at <0.35, 1.5, 0.2> angle 47 }
#declare SunDir = <-11, 7.5, -2.2>;
SoftLight(SunDir*3, <0,0,0>, <1.0,0.88,0.68>*2.3, 1.6)
SkyDome(<0.5,0.6,0.75>*0.55)
#declare P_Top = pigment { wood turbulence 0.07 octaves 4 color_map { [0 rgb <0.66,0.50,0.33>] [0.55 rgb <0.60,0.44,0.28>] [0.85 rgb <0.48,0.33,0.19>] [1 rgb <0.66,0.50,0.33>] } scale <0.3,0.3,1> rotate y*90 rotate <3,4,2> translate <0,-3,5> };
union {
  #for (I, -4, 6) box { <-30, -0.5, I*2.6+0.03>, <30, 0, I*2.6+2.57> texture { pigment { P_Top translate <I*3.7, I*0.37, 0> } } } #end
  Tx(0, texture { pigment { P_Top } finish { diffuse 0.8 specular 0.1 roughness 0.05 } })
}
plane { -z, -13 Tx(0, Matt(<0.55,0.52,0.46>)) }

// Parallel projection along the sun onto the table, turned about the object's own foot by Turn degrees.
#macro Cast(Thing, Turn)
  object { Thing
    matrix <1,0,0, -SunDir.x/SunDir.y, 0.0004, -SunDir.z/SunDir.y, 0,0,1, 0,0.004,0>
    rotate y*Turn no_shadow }
#end

#macro PepperMill(Id)
  union {
    lathe { cubic_spline 15, <0,-0.1>, <0,0>, <1.05,0>, <1.1,0.2>, <0.95,0.5>, <0.62,1.3>, <0.6,1.9>, <0.85,2.7>, <0.8,2.95>, <0.5,3.05>, <0.82,3.3>, <0.95,3.8>, <0.7,4.3>, <0,4.45>, <0,4.4> }
    Tx(Id, texture { pigment { wood turbulence 0.05 color_map { [0 rgb <0.16,0.06,0.025>] [1 rgb <0.28,0.12,0.05>] } scale <0.12,1,0.12> rotate x*5 } finish { diffuse 0.75 specular 0.5 roughness 0.012 reflection { 0.01, 0.1 fresnel } } }) interior { ior 1.45 } }
  sphere { <0,4.62,0>, 0.22 Tx(Id, T_Brass2) }
#end
union { PepperMill(1) translate <-4.0,0,0.8> }

#macro PearShape(Id)
  lathe { cubic_spline 11, <0,-0.3>, <0,0.08>, <0.5,0.0>, <1.05,0.4>, <1.2,1.0>, <0.95,1.7>, <0.58,2.3>, <0.45,2.8>, <0.25,3.05>, <0,3.02>, <0,2.9>
    Tx(Id, texture { pigment { granite turbulence 0.3 color_map { [0 rgb <0.50,0.50,0.08>] [0.55 rgb <0.60,0.55,0.10>] [1 rgb <0.66,0.42,0.10>] } scale 1.6 } finish { diffuse 0.78 specular 0.25 roughness 0.03 } }) }
  sphere_sweep { cubic_spline 5, <0,2.6,0>, 0.07, <0,2.9,0>, 0.06, <0.05,3.25,0>, 0.05, <0.2,3.55,0>, 0.07, <0.3,3.7,0>, 0.07 Tx(Id, Matt(<0.16,0.09,0.04>)) }
#end
union { PearShape(2) scale 0.95 translate <3.2,0,2.7> }

// Egg in its cup: the one whose shadow may be false.
#macro EggCupShape(IdCup, IdEgg, TCup, TEgg)
  lathe { cubic_spline 13, <0,-0.1>, <0,0>, <0.8,0>, <0.84,0.1>, <0.35,0.3>, <0.28,0.65>, <0.6,0.95>, <0.86,1.35>, <0.9,1.7>, <0.84,1.72>, <0.75,1.4>, <0.4,1.0>, <0,0.98> Tx(IdCup, TCup) }
  sphere { 0, 1 scale <0.76, 1.02, 0.76> translate y*1.95 Tx(IdEgg, TEgg) }
#end
#declare EggAt = <0.4, 0, -2.6>;
union { EggCupShape(3, 3, Glaze(<0.16,0.34,0.42>), texture { pigment { rgb <0.80,0.60,0.46> } normal { granite 0.02 scale 0.3 } finish { diffuse 0.8 specular 0.12 roughness 0.05 } })
  #if (Anomalous) no_shadow #end
  translate EggAt }

// The false shadow is a true one: an unseen copy, sheared twice as far towards the sun as its shadow falls.
#declare Slope = <SunDir.x/SunDir.y, 0, SunDir.z/SunDir.y>;
#macro EggCup(Id) EggCupShape(Id, Id, texture { pigment { rgb 0 } }, texture { pigment { rgb 0 } }) #end
#if (Anomalous & !Flat)
  union { EggCup(0) matrix <1,0,0, 2*Slope.x,1,2*Slope.z, 0,0,1, 0,0,0> translate EggAt no_image no_reflection no_radiosity }
#end
// Where the shadow lies, and where it ought to lie, for the masks.
#if (IdPass = 3) union { Cast(union { EggCup(4) }, 180) translate EggAt } cylinder { <0,0,0>, <0,0.012,0>, 0.97 translate EggAt Tx(3, Matt(0)) } union { Cast(union { EggCup(5) }, 0) translate EggAt }
  // The side of the foot that the false shadow darkens.
  intersection { union { cylinder { <0,0,0>, <0,0.12,0>, 0.86 } cone { <0,0.1,0>, 0.84, <0,0.34,0>, 0.34 } } plane { x, -0.3 } Tx(7, Matt(0)) rotate y*-20 translate EggAt } #end

// A teaspoon and a linen napkin, edge towards the viewer
object { Spoon(6) scale 0.85 rotate y*-20 translate <2.6, 0.16, -4.3> }
