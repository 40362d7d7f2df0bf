// A bedside table: alarm clock, glass of water with a spoon, folded glasses case on a book.
#include "common.inc"
camera { location <-0.6, 5.2, -13.5> right x*4/3 up y look_at <0.1, 2.35, 0> angle 46 }
SoftLight(<-9, 14, -11>, <0,0,0>, <1.0,0.86,0.68>*2.0, 4)
SkyDome(<0.62,0.66,0.74>*0.75)
box { <-30,-1,-14>, <30,0,4.6> Tx(0, Wood(<0.33,0.22,0.13>, <0.62,0.46,0.30>)) }
union { plane { -z, -8 Tx(0, texture { pigment { gradient x color_map { [0 rgb <0.30,0.40,0.36>] [0.5 rgb <0.30,0.40,0.36>] [0.5 rgb <0.34,0.45,0.40>] [1 rgb <0.34,0.45,0.40>] } scale 1.8 } finish { diffuse 0.85 } }) } }

// Alarm clock with the numerals the scene asks for.
#declare Face = array[12] {"12","1","2","3","4","5","6","7","8","9","10","11"}
#if (Anomalous) #declare Face[1] = "13"; #declare Face[2] = "7"; #declare Face[3] = "3"; #declare Face[4] = "8"; #end
#macro Numeral(S) #local T = text { ttf "/usr/share/fonts/truetype/dejavu/DejaVuSerif-Bold.ttf" S 0.02, 0 }
  #local M = (min_extent(T)+max_extent(T))/2; object { T translate -M*<1,1,0> scale <0.46,0.46,1> } #end
#declare Clock = union {
  cylinder { <0,0,0>, <0,0,1.3>, 2.15 Tx(1, Glaze(<0.55,0.10,0.07>)) }
  torus { 2.05, 0.16 rotate x*90 Tx(1, T_Brass2) }
  cylinder { <0,0,-0.03>, <0,0,0.1>, 2.0 Tx(1, Matt(<0.88,0.86,0.78>)) }
  #for (I, 0, 11)
    object { Numeral(Face[I]) translate <1.52*sin(I*pi/6), 1.52*cos(I*pi/6), -0.05>
      Tx((I > 0 & I < 5 & I != 3 ? 2 : 1), Matt(<0.03,0.03,0.035>)) }
  #end
  #for (I, 0, 59) box { <-0.012,1.84,-0.045>, <0.012,1.95,0> rotate z*I*6 Tx(1, Matt(<0.05,0.05,0.05>)) } #end
  union { cone { <0,-0.2,-0.08>, 0.09, <0,1.0,-0.08>, 0.03 scale <1,1,0.3> rotate z*55 translate z*-0.05 }
    cone { <0,-0.25,-0.12>, 0.07, <0,1.42,-0.12>, 0.025 scale <1,1,0.3> rotate z*-54 translate z*-0.05 }
    sphere { <0,0,-0.1>, 0.12 } Tx(1, Matt(<0.03,0.03,0.035>)) }
  union { sphere { 0, 0.85 scale <1,0.75,1> translate <-1.25,2.15,0.65> } sphere { 0, 0.85 scale <1,0.75,1> translate <1.25,2.15,0.65> } Tx(6, T_Brass2) }
  union { cylinder { <0,2,0.65>, <0,3.15,0.65>, 0.06 } cylinder { <-0.25,3.1,0.65>, <0.25,3.1,0.65>, 0.13 } Tx(8, T_Brass2) }
  union { cone { <-1.2,-1.6,0.65>, 0.22, <-1.75,-2.5,0.65>, 0.12 } cone { <1.2,-1.6,0.65>, 0.22, <1.75,-2.5,0.65>, 0.12 } sphere {<-1.75,-2.5,0.65>,0.14} sphere {<1.75,-2.5,0.65>,0.14} Tx(7, T_Brass2) }
}
object { Clock rotate y*14 translate <-2.7, 2.63, 1.0> }

// Tumbler with water; in the picture with the anomaly the spoon goes through its side.
#declare T_Glass = texture { pigment { rgbf <0.96,0.99,0.985,0.97> } finish { diffuse 0.02 specular 0.8 roughness 0.003 reflection { 0.03, 0.6 fresnel } conserve_energy } };
#declare GlassAt = <2.1, 0, -1.4>;
#macro Tumbler(Id)
  difference { cone { <0,0,0>, 1.0, <0,3.3,0>, 1.25 } cone { <0,0.3,0>, 0.93, <0,3.4,0>, 1.19 } Tx(Id, T_Glass) interior { ior 1.45 } }
#end
#if (IdPass != 1) object { Tumbler(3) translate GlassAt } #end
#if (!Flat) cone { <0,0.302,0>, 0.925, <0,2.0,0>, 1.08 texture { pigment { rgbf <0.93,0.98,0.98,0.98> } finish { diffuse 0.0 specular 0.5 roughness 0.005 reflection { 0.01, 0.4 fresnel } conserve_energy } } interior { ior 1.33 } translate GlassAt } #end
// Clear glass lets nearly all light through, so that its pale shadow is cast by a grey one that is not seen.
#if (!Flat) cone { <0,0,0>, 1.0, <0,3.3,0>, 1.25 open texture { pigment { rgbf <0.80,0.84,0.83,1> } finish { diffuse 0 } } translate GlassAt no_image no_reflection no_radiosity } #end
#macro Handle(Id) union {
  sphere_sweep { cubic_spline 6, <0,-0.5,0>, 0.08, <0,0,0>, 0.08, <0,1.2,0>, 0.065, <0,2.4,0>, 0.08, <0,3.6,0>, 0.13, <0,4.2,0>, 0.13 tolerance 0.001 }
  sphere { 0, 1 scale <0.36,0.55,0.13> translate y*-0.35 } Tx(Id, T_Steel) } #end
#if (Anomalous) object { Handle(4) rotate z*-72 translate <-1.25,1.35,0> translate GlassAt }
// The bowl rests on the floor of the glass, the handle on its rim.
#else object { Handle(4) rotate z*-33 translate <-0.345,1.1,0> translate GlassAt } #end

object { Book(5, 4.4, 0.7, 3.0, <0.10,0.16,0.32>) rotate y*9 translate <2.0,0,1.9> }
